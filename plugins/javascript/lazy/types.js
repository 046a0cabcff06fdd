// A part that is kept as text until a script asks for it: the removal of types.

export { transform } from "sucrase";
