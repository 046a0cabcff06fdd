// The tool `notes`: counts words, and keeps notes in its key-value space.

import { characters, defineTool, Failed, keyvalue } from "longhaul-sdk";

const NAME = { type: "string", minLength: 1, maxLength: 100 };
const TEXT = { type: "string" };

export const tool = defineTool({
  id: "notes",
  description: "Counts words and keeps notes.",
  functions: {
    count: {
      description: "Counts the words, lines and characters of a text.",
      effect: "read-only",
      parameters: parameters({ text: TEXT }),
      call: ({ text }) => count(text),
    },
    save: {
      description: "Keeps a text under a name, in place of what was there.",
      effect: "idempotent",
      parameters: parameters({ name: NAME, text: TEXT }),
      call({ name, text }) {
        keyvalue.set(keyOf(name), text);
        return { saved: name };
      },
    },
    read: {
      description: "Gives the text that was kept under a name.",
      effect: "read-only",
      parameters: parameters({ name: NAME }),
      call({ name }) {
        const text = keyvalue.getText(keyOf(name));
        if (text === undefined) throw new Failed(`there is no note \`${name}\``);
        return { text };
      },
    },
  },
});

function count(text) {
  const lineFeeds = text.split("\n").length - 1;
  return {
    words: text.split(/\p{White_Space}+/u).filter((word) => word !== "").length,
    lines: text === "" ? 0 : lineFeeds + 1,
    characters: characters(text),
  };
}

function parameters(properties) {
  return { type: "object", properties, required: Object.keys(properties), additionalProperties: false };
}

function keyOf(name) {
  return `note/${name}`;
}
