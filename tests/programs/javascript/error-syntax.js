console.log("never");
let = = 3;
