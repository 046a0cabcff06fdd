// The tool `{{name}}`: one function, to begin with.

import { defineTool } from "longhaul-sdk";

export const tool = defineTool({
  id: "{{name}}",
  description: "Greets by name.",
  functions: {
    greet: {
      description: "Greets somebody by name.",
      // It touches nothing, so it may be repeated. `acts` is for what must not be.
      effect: "read-only",
      // Arguments are checked against this before `call` sees them.
      parameters: {
        type: "object",
        properties: { name: { type: "string" } },
        required: ["name"],
        additionalProperties: false,
      },
      call: ({ name }) => ({ greeting: `Hello, ${name}!` }),
    },
  },
});
