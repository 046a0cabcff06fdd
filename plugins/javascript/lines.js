// `require("readline")` over the standard input, which is all there when a script starts.
//
// There is no terminal: a question is printed, and the next line is its answer.

/** The module; `read` gives the standard input once, `write` prints, `later` calls back after the running job. */
export function makeReadline({ read, write, later, EventEmitter, Promise, asyncGenerator }) {
  class Interface extends EventEmitter {
    #lines;
    #isClosed = false;
    #isFlowing = false;

    constructor({ prompt = "> " } = {}) {
      super();
      Object.defineProperty(this, "promptText", { value: prompt, writable: true });
      later(() => this.#flow());
    }

    on(name, listener) {
      if (name === "line") this.#isFlowing = true;
      return super.on(name, listener);
    }

    setPrompt(text) {
      this.promptText = text;
    }

    prompt() {
      write(this.promptText);
    }

    question(text, options, callback = options) {
      write(text);
      const line = this.#next();
      if (line !== undefined) later(() => callback(line));
      else later(() => this.close());
    }

    close() {
      if (this.#isClosed) return;
      this.#isClosed = true;
      this.emit("close");
    }

    pause() {
      return this;
    }

    resume() {
      return this;
    }

    [Symbol.asyncIterator]() {
      const next = () => this.#next();
      return asyncGenerator(function* () {
        for (let line = next(); line !== undefined; line = next()) yield line;
      });
    }

    #next() {
      if (this.#isClosed) return undefined;
      if (this.#lines === undefined) {
        const text = read() ?? "";
        this.#lines = text === "" ? [] : text.replace(/\r?\n$/, "").split(/\r?\n/);
      }
      return this.#lines.shift();
    }

    #flow() {
      if (!this.#isFlowing) return;
      for (let line = this.#next(); line !== undefined; line = this.#next()) this.emit("line", line);
      this.close();
    }
  }

  const createInterface = (options) => new Interface(options);
  const asked = (options) => {
    const lines = createInterface(options);
    const question = lines.question.bind(lines);
    lines.question = (text) => new Promise((resolve) => question(text, resolve));
    return lines;
  };
  return { readline: { createInterface, Interface, promises: { createInterface: asked } }, promises: { createInterface: asked } };
}
