// Outside a component `console` and `Math.random` are left as they are.

export function beginCall() {}
