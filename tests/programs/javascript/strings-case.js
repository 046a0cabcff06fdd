const camel = (s) => s.replace(/[-_ ](\w)/g, (_, c) => c.toUpperCase());
const snake = (s) => s.replace(/[A-Z]/g, (c) => "_" + c.toLowerCase());
const title = (s) => s.replace(/\b\w/g, (c) => c.toUpperCase());
console.log(camel("my-long_name here"), snake("myLongName"), title("the quick fox"));
