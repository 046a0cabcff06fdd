// The tool `notes-ts`: what `../tool` is, in TypeScript. Types are for the author and the editor; they are
// gone from the component.

import { characters, defineTool, Failed, keyvalue, type Schema } from "longhaul-sdk";

interface Named {
  name: string;
}

interface Texted {
  text: string;
}

interface Counts {
  words: number;
  lines: number;
  characters: number;
}

const NAME: Schema = { type: "string", minLength: 1, maxLength: 100 };
const TEXT: Schema = { type: "string" };

export const tool = defineTool({
  id: "notes-ts",
  description: "Counts words and keeps notes.",
  functions: {
    count: {
      description: "Counts the words, lines and characters of a text.",
      effect: "read-only",
      parameters: parameters({ text: TEXT }),
      call: ({ text }: Texted): Counts => count(text),
    },
    save: {
      description: "Keeps a text under a name, in place of what was there.",
      effect: "idempotent",
      parameters: parameters({ name: NAME, text: TEXT }),
      call({ name, text }: Named & Texted) {
        keyvalue.set(keyOf(name), text);
        return { saved: name };
      },
    },
    read: {
      description: "Gives the text that was kept under a name.",
      effect: "read-only",
      parameters: parameters({ name: NAME }),
      call({ name }: Named): Texted {
        const text = keyvalue.getText(keyOf(name));
        if (text === undefined) throw new Failed(`there is no note \`${name}\``);
        return { text };
      },
    },
  },
});

function count(text: string): Counts {
  const lineFeeds = text.split("\n").length - 1;
  return {
    words: text.split(/\p{White_Space}+/u).filter((word) => word !== "").length,
    lines: text === "" ? 0 : lineFeeds + 1,
    characters: characters(text),
  };
}

function parameters(properties: Record<string, Schema>): Schema {
  return { type: "object", properties, required: Object.keys(properties), additionalProperties: false };
}

function keyOf(name: string): string {
  return `note/${name}`;
}
