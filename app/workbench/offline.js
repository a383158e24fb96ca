// The host of a page that is one file: texts lie in it, compressed; a search by words reads them all. No network.

const K1 = 1.2, B = 0.75; // of BM25 (Robertson and Zaragoza 2009)
const WORD = /[\p{L}\p{N}]+/gu, LETTER = /[\p{L}\p{N}]/u;
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/u;

/** Return the bytes of an element that holds Base64 of deflated bytes. */
async function inflated(element) {
  const binary = atob(element.textContent.trim()), bytes = new Uint8Array(binary.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = binary.charCodeAt(at);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
}

/** Return a text in which letters differ neither in case nor in accents. */
function folded(text) {
  return (/[^\x00-\x7f]/.test(text) ? text.normalize("NFKD").replace(/\p{M}+/gu, "") : text).toLowerCase();
}

/** Return how often a text has a word; `whole` asks for the word itself and not only for its beginning. */
function occurrences(text, word, whole) {
  let count = 0;
  const spaced = !UNSPACED.test(word);
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
    if (spaced && at > 0 && LETTER.test(text[at - 1])) continue;
    const after = text[at + word.length];
    if (!(spaced && whole && after !== undefined && LETTER.test(after))) count++;
  }
  return count;
}

/** The documents of the file, in blocks that are read when they are first needed. */
class Texts {
  constructor(blocks) {
    this.blocks = blocks; // elements, each with `data-first`, the row of its first document
    this.firsts = blocks.map((block) => Number(block.dataset.first));
    this.read = new Map();
  }

  block(at) {
    if (!this.read.has(at)) this.read.set(at, inflated(this.blocks[at]).then((bytes) => JSON.parse(new TextDecoder().decode(bytes))));
    return this.read.get(at);
  }

  async rows(numbers) {
    return Promise.all(numbers.map(async (row) => {
      const at = this.firsts.findLastIndex((first) => first <= row);
      const [id, title, text, metadata] = (await this.block(at))[row - this.firsts[at]];
      return { row, id, title, text, metadata };
    }));
  }

  /** Return all documents as folded texts, with the row of each id. */
  async whole() {
    return (this.kept ??= this.folded());
  }

  async folded() {
    const texts = [], rowOf = new Map();
    for (let at = 0; at < this.blocks.length; at++) {
      for (const [id, title, text] of await this.block(at)) {
        rowOf.set(id, texts.length);
        texts.push(folded(`${title} ${text}`));
      }
    }
    const characters = texts.reduce((sum, text) => sum + text.length, 0);
    return { texts, rowOf, mean: characters / Math.max(texts.length, 1) };
  }

  /** Return the rows that hold words of a query, the best first by BM25; where no document has a word, those that begin so. */
  async search(query, k) {
    const { texts, mean } = await this.whole(), scores = new Float64Array(texts.length);
    const words = [...new Set(folded(query).match(WORD) ?? [])], long = words.filter((word) => word.length > 1);
    for (const word of long.length ? long : words) { // single letters are in every text
      const counts = new Uint16Array(texts.length);
      let documents = 0;
      for (const whole of [true, false]) {
        for (let row = 0; row < texts.length; row++) if ((counts[row] = occurrences(texts[row], word, whole))) documents++;
        if (documents) break;
      }
      const rarity = Math.log(1 + (texts.length - documents + 0.5) / (documents + 0.5));
      for (let row = 0; row < texts.length; row++) {
        if (counts[row]) scores[row] += (rarity * counts[row] * (K1 + 1)) / (counts[row] + K1 * (1 - B + (B * texts[row].length) / mean));
      }
    }
    const rows = [];
    for (let row = 0; row < scores.length; row++) if (scores[row] > 0) rows.push(row);
    rows.sort((one, two) => scores[two] - scores[one] || one - two);
    const best = Int32Array.from(rows.slice(0, k));
    return { rows: best, scores: Float32Array.from(best, (row) => scores[row]) };
  }

  async resolve(part) {
    if (part.kind !== "documents") return null;
    const { rowOf } = await this.whole();
    return { rows: part.ids.map((id) => rowOf.get(id)).filter((row) => row !== undefined) };
  }
}

function readState() {
  return { s: "", color: "", names: "", view: "", ...Object.fromEntries(new URLSearchParams(location.hash.slice(1))) };
}

function keepState(state, replace) {
  const known = Object.entries(state).filter(([, value]) => value);
  history[replace ? "replaceState" : "pushState"](null, "", `#${new URLSearchParams(known)}`);
}

async function openFile() {
  const root = document.getElementById("root"), texts = new Texts([...document.querySelectorAll("script[data-first]")]);
  const table = await inflated(document.getElementById("table"));
  const host = {
    rows: (numbers) => texts.rows([...numbers]), search: (query, k) => texts.search(query, k),
    resolve: (part) => texts.resolve(part), changed: keepState,
  };
  const shown = mount(root, { table, options: { state: readState() }, host });
  setTimeout(() => texts.whole(), 500); // so that the first search need not wait for it
  addEventListener("popstate", () => shown.update({ state: readState() }));
}

openFile().catch((error) => {
  document.getElementById("root").textContent = `This page cannot be shown: ${error.message}. Open it in a newer browser.`;
});
