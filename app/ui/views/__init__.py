"""One module a page; each has a function `show` that draws it."""
