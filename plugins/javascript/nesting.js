// Whether a text could nest deeply, seen quickly: to count brackets as a parser would takes longer than many a source.

/** False when `text` has no more than `max` of the brackets `marks`, and so cannot nest deeper. */
export function mayNestDeeper(text, marks, max) {
  if (text.length <= max) return false;
  let found = 0;
  for (const mark of marks) {
    for (let at = text.indexOf(mark); at >= 0; at = text.indexOf(mark, at + 1)) {
      found += 1;
      if (found > max) return true;
    }
  }
  return false;
}
