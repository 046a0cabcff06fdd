// Names of locales, and the marks that numbers have in some of them.

/** Decimal mark, mark between groups, and digits that a number needs before it has groups. */
const MARKS = {
  de: [",", ".", 4],
  es: [",", ".", 5],
  fr: [",", "\u202f", 4],
  it: [",", ".", 4],
  nl: [",", ".", 4],
  pt: [",", ".", 4],
  ru: [",", "\u00a0", 4],
  sv: [",", "\u00a0", 4],
  tr: [",", ".", 4],
  pl: [",", "\u00a0", 5],
};

/** The name of a locale in its usual letters, or a RangeError. */
export function canonical(name) {
  const text = String(name);
  if (!/^[a-z]{2,3}(-[a-z]{4})?(-([a-z]{2}|\d{3}))?(-[a-z0-9]{1,8})*$/i.test(text)) {
    throw new RangeError(`Incorrect locale information provided`);
  }
  const [language, ...rest] = text.split("-");
  const shown = rest.map((part) => {
    if (part.length === 4) return part[0].toUpperCase() + part.slice(1).toLowerCase();
    return part.length === 2 ? part.toUpperCase() : part.toLowerCase();
  });
  return [language.toLowerCase(), ...shown].join("-");
}

/** The first of the wanted locales that there is something of, and else English. */
export function chosen(locales) {
  const names = (locales === undefined ? [] : [locales].flat()).map(canonical);
  return names.find((name) => /^en\b/.test(name) || Object.hasOwn(MARKS, name.slice(0, 2))) ?? "en-US";
}

export function marksOf(locale) {
  const [decimal, group, groupsFrom] = MARKS[locale.slice(0, 2)] ?? [".", ",", 4];
  return { decimal, group, groupsFrom };
}

/** An option that must be one of `known`. */
export function oneOf(name, value, known) {
  if (value === undefined || known.includes(value)) return value;
  throw new RangeError(`Value ${String(value)} out of range for Intl options property ${name}`);
}
