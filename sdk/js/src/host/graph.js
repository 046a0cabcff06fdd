// The import of the contract. A world without it cannot build a plugin that uses it.
export { default } from "longhaul:plugin/graph@0.1.0";
