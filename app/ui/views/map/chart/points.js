// All points at once, by WebGL: https://registry.khronos.org/webgl/specs/latest/1.0/

const VERTEX = `
  attribute vec2 place;
  attribute vec4 color;
  uniform vec2 middle, stretch;
  uniform mediump float size;
  varying vec4 shade;
  void main() {
    gl_Position = vec4((place - middle) * stretch, 0.0, 1.0);
    gl_PointSize = size;
    shade = color;
  }`;
const FRAGMENT = `
  precision mediump float;
  uniform float opacity, size;
  varying vec4 shade;
  void main() {
    float inside = clamp(0.5 * size - size * distance(gl_PointCoord, vec2(0.5)) + 0.5, 0.0, 1.0);
    float alpha = opacity * inside;
    gl_FragColor = vec4(shade.rgb * alpha, alpha);
  }`;

class Points {
  /** `canvas` shows the points; throws where a browser has no WebGL. */
  constructor(canvas) {
    this.gl = canvas.getContext("webgl", { antialias: false, depth: false });
    if (!this.gl) throw new Error("This browser has no WebGL, which the map is drawn with.");
    this.places = this.colors = null;
    this.count = 0;
    this.build();
  }

  /** Make program and buffers; again, after a browser has taken the context away. */
  build() {
    const gl = this.gl, program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
    gl.useProgram(program);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    const names = ["middle", "stretch", "size", "opacity"];
    this.uniforms = Object.fromEntries(names.map((name) => [name, gl.getUniformLocation(program, name)]));
    this.buffers = ["place", "color"].map((name) => [gl.createBuffer(), gl.getAttribLocation(program, name)]);
    if (this.count) this.load(this.places, this.colors);
  }

  /** Take points: `places` float32, x and y of one after the other; `colors` four bytes each. */
  load(places, colors) {
    const gl = this.gl, [[place, placeAt], [color, colorAt]] = this.buffers;
    [this.places, this.colors, this.count] = [places, colors, places.length / 2];
    for (const [buffer, at, values, size, type, unit] of [
      [place, placeAt, places, 2, gl.FLOAT, false],
      [color, colorAt, colors, 4, gl.UNSIGNED_BYTE, true],
    ]) {
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
      gl.enableVertexAttribArray(at);
      gl.vertexAttribPointer(at, size, type, unit, 0, 0);
    }
  }

  /** Draw what a view sees; `size` is a point's diameter in pixels of the screen, of which `ratio` make one of the page. */
  draw(view, size, opacity, ratio) {
    const gl = this.gl, { uniforms } = this;
    gl.viewport(0, 0, gl.drawingBufferWidth, gl.drawingBufferHeight);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.uniform2f(uniforms.middle, view.x, view.y);
    gl.uniform2f(uniforms.stretch, (2 * view.scale) / view.width, (2 * view.scale) / view.height);
    gl.uniform1f(uniforms.size, size * ratio);
    gl.uniform1f(uniforms.opacity, opacity);
    gl.drawArrays(gl.POINTS, 0, this.count);
  }

  /** Give the context back: a browser keeps sixteen. */
  close() {
    this.gl.getExtension("WEBGL_lose_context")?.loseContext();
  }
}
