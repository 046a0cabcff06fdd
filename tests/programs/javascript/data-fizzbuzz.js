console.log(Array.from({ length: 15 }, (_, i) => ++i % 15 ? i % 5 ? i % 3 ? i : "Fizz" : "Buzz" : "FizzBuzz").join(" "));
