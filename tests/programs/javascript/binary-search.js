function search(list, wanted) {
  let [low, high] = [0, list.length - 1];
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (list[middle] === wanted) return middle;
    if (list[middle] < wanted) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}
console.log([1, 4, 9, 16].map((v) => search([1, 4, 9, 16], v)), search([1, 4], 3));
