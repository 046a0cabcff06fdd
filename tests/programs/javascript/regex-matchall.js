const text = "a=1; b=22; c=333";
for (const { 1: k, 2: v, index } of text.matchAll(/(\w)=(\d+)/g)) console.log(k, v, index);
console.log(text.replace(/\d+/g, (n) => n.length), [..."aabbb".matchAll(/(.)\1*/g)].map((m) => m[1] + m[0].length).join(""));
