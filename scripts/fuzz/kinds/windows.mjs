// Programs that leave out a constant number of rows: of sizes that differ from call to call more are left, or one, whose dimension a program may drop, or none.
const POINTWISE = ['sin()', 'mul(2)', 'add(0.5)', 'abs()', 'neg()', 'square()', 'sub(1)', 'tanh()']

/** What is left of a tensor, as an expression. */
function windowOf({ random }, x, dim) {
  const first = 1 + random.int(3)
  return random.pick([`${x}.slice(${dim}, ${first})`, `${x}.slice(${dim}, 0, -${first})`, `${x}.slice(${dim}, ${first}, -1)`])
}

/** What a program makes of it. */
function madeOf({ random }, window, dim) {
  return random.pick([
    `${window}.squeeze(${dim})`,
    `${window}.squeeze()`,
    `${window}.transpose(0, -1).squeeze(0)`,
    window,
    `${window}.reshape([-1])`,
    `${window}.sum(${dim})`,
    `${window}.mean(${dim}, true)`,
    `${window}.var(${dim})`,
    `${window}.softmax(${dim})`,
  ])
}

export const windows = {
  tensors({ random }, list) {
    // A compiled backward refuses other sizes than its guards allow, before a kernel does.
    if (random.chance(0.7)) for (const tensor of list) tensor.grad = false
  },
  write(w) {
    const x = w.float((name) => w.shape(name).length > 0)
    if (x === undefined) return false
    const { random } = w
    const dim = random.int(w.shape(x).length)
    const chain = Array.from({ length: random.int(4) }, () => `.${random.pick(POINTWISE)}`).join('')
    return w.define(`${madeOf(w, windowOf(w, x, dim), dim)}${chain}`, [x]) !== null
  },
}
