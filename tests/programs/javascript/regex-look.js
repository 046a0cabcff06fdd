console.log("1234567.89".replace(/\B(?=(\d{3})+(?!\d))/g, ","), "price: $42, €17".match(/(?<=[$€])\d+/g), "foobar foobaz".match(/foo(?!bar)\w+/)[0], "aXbX".replace(/(?<!a)X/, "_"));
