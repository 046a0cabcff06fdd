console.log("%s is %d years and %i, %f, %j, %o %%", "Ann", 31.5, 31.9, 1.5, { a: 1 }, [1], "rest");
console.log("%c styled", "color: red", "%s");
console.log("a\tb", 'q"uote', ["it's", 'q"'], { s: "a\nb" });
