// Kinds of statements on tensors without side effects: one element each, views, sums, dtypes, matrix products, random ones of the table.

const UNARY = ['sin', 'cos', 'tanh', 'sigmoid', 'relu', 'abs', 'neg', 'square', 'exp', 'erf', 'expm1', 'sqrt', 'rsqrt', 'log1p', 'reciprocal']
const STEPS = ['floor', 'ceil', 'round', 'trunc', 'sign']
const ACTIVATIONS = ['gelu', 'silu', 'elu', 'leakyRelu', 'relu', 'tanh']
const BINARY = ['add', 'sub', 'mul', 'div', 'maximum', 'minimum', 'logaddexp', 'remainder', 'fmod']
const NUMBERS = ['2', '0.5', '-1', '3', '-0.25', '1.5', '0', '7']

export const pointwise = {
  write(w) {
    const { random } = w
    const x = w.float() ?? w.tensor()
    if (x === undefined) return false
    const y = w.tensor()
    const number = random.pick(NUMBERS)
    const other = random.chance(0.3) ? number : y
    const made = random.pick([
      () => w.define(`${x}.${random.pick(UNARY)}()`, [x]),
      () => w.define(`${x}.${random.pick(BINARY)}(${other})`, [x, y]),
      () => w.define(`${x}.${random.pick(['add', 'sub'])}(${y}, { alpha: ${number} })`, [x, y]),
      () => w.define(`torch.nn.functional.${random.pick(ACTIVATIONS)}(${x})`, [x]),
      () => w.define(`torch.where(${x}.${random.pick(['gt', 'le', 'ne'])}(${other}), ${x}, ${random.chance(0.5) ? `${x}.mul(2)` : y})`, [x, y]),
      () => w.define(`${x}.clamp(-1, ${random.pick(['0.5', 'null'])})`, [x]),
      () => w.define(`${x}.lerp(${y}, 0.25)`, [x, y]),
      () => w.define(`torch.addcmul(${x}, ${y}, ${x}, { value: ${number} })`, [x, y]),
      () => w.define(`${x}.abs().pow(${random.pick(['2', '0.5', '3', '-1'])})`, [x]),
      () => w.define(`${x}.maskedFill(${x}.gt(${number}), ${random.pick(NUMBERS)})`, [x]),
      () => w.define(`${x}.${random.pick(STEPS)}()`, [x]),
    ])()
    return made !== null
  },
}

/** Operators whose shapes depend on values, which a trace of shapes does not know. */
const BY_VALUES = /(?:^|\.)(?:nonzero|argwhere|masked\w*|index\w*|repeatInterleave|bincount|unique\w*)$/i

/** Windows on the storage. A trace of aliases, or of gradients through them, knows less of the storage than eager does. */
const windowsOf = (w, x) =>
  w.traced && w.program.kinds.some((kind) => kind === 'aliases' || kind === 'gradients' || kind === 'viewWrites')
    ? []
    : [
        // Storages may have room that a traced program need not have.
        ...(!w.traced || w.value(x).numel >= 2 ? [`torch.asStrided(${x}, [2], [1])`] : []),
        ...(!w.traced || w.value(x).numel >= 4 ? [`torch.asStrided(${x}, [2, 2], [2, 1])`] : []),
      ]

/** A random view of a tensor, as an expression. */
export function viewOf(w, x) {
  const { random } = w
  const shape = w.shape(x)
  const rank = shape.length
  const dim = random.int(Math.max(1, rank))
  const size = shape[dim] ?? 1
  const at = random.int(Math.max(1, size))
  const flat = [`${x}.view([-1])`, `${x}.unsqueeze(${random.int(rank + 1)})`, `${x}.squeeze()`, `${x}.detach()`, `${x}.reshape([-1])`]
  if (rank === 0) return random.pick([...flat, `${x}.expand([3])`])
  return random.pick([
    ...flat,
    `${x}.select(${dim}, ${random.chance(0.3) ? -1 : at})`,
    `${x}.select(${dim}, ${at})`,
    `${x}[${random.int(Math.max(1, shape[0]))}]`,
    `${x}.slice(${dim}, ${at}, ${random.pick(['null', '-1', '100'])})`,
    `${x}.slice(${dim}, 0, null, 2)`,
    `${x}.narrow(${dim}, ${at}, ${Math.max(0, size - at)})`,
    `${x}.T`,
    `${x}.transpose(0, ${rank - 1})`,
    `${x}.permute([${shape.map((_, i) => rank - 1 - i).join(', ')}])`,
    `${x}.expand([2, ${shape.join(', ')}])`,
    `${x}.view([${shape.toReversed().join(', ')}])`,
    `${x}.chunk(2)[${random.int(2)}]`,
    `${x}.unbind()[0]`,
    `${x}.getitem([${at}, null])`,
    `${x}.flatten()`,
    ...windowsOf(w, x),
  ])
}

export const views = {
  write(w) {
    const x = w.tensor()
    return x !== undefined && w.define(viewOf(w, x), [x]) !== null
  },
}

export const reductions = {
  write(w) {
    const { random } = w
    const x = w.float()
    if (x === undefined) return false
    const dim = w.shape(x).length === 0 ? '' : random.pick(['', '0', '-1'])
    const keep = dim !== '' && random.chance(0.3) ? ', true' : ''
    const of = random.pick(['sum', 'mean', 'amax', 'amin', 'prod', 'any', 'all', 'sum', 'mean'])
    return (
      random.pick([
        () => w.define(`${x}.${of}(${dim}${keep})`, [x]),
        () => w.define(`${x}.softmax(${dim === '' ? 0 : dim})`, [x]),
        () => w.define(`${x}.logSoftmax(-1)`, [x]),
        () => w.define(`${x}.cumsum(${dim === '' ? 0 : dim})`, [x]),
        () => w.define(`${x}.var(${dim})`, [x]),
        () => w.define(`${x}.norm()`, [x]),
        () => w.define(`${x}.logsumexp([${dim === '' ? 0 : dim}])`, [x]),
        () => w.define(`${x}.argmax(${dim})`, []),
        () => w.define(`${x}.max(${dim === '' ? 0 : dim})[0]`, [x]),
        () => w.define(`torch.nn.functional.${random.pick(['mseLoss', 'l1Loss', 'smoothL1Loss'])}(${x}, ${x}.detach().mul(0.5))`, [x]),
        () => w.define(`torch.nn.functional.layerNorm(${x}, [${w.shape(x).at(-1) ?? 1}])`, [x]),
      ])() !== null
    )
  },
}

export const templates = {
  write(w) {
    const { random } = w
    const x = w.float((name) => w.shape(name).length > 0)
    if (x === undefined) return false
    const shape = w.shape(x)
    const last = shape.at(-1)
    const k = random.int(500)
    const F = 'torch.nn.functional'
    return (
      random.pick([
        () => w.define(`${x}.matmul(data([${last}, ${1 + random.int(5)}], ${k}))`, [x]),
        () => w.define(`${F}.linear(${x}, data([${1 + random.int(6)}, ${last}], ${k}))`, [x]),
        () => w.define(`${x}.matmul(${x}.transpose(-1, ${-shape.length}))`, [x]),
        () => w.define(`torch.outer(${x}.flatten(), data([3], ${k}))`, [x]),
        () => w.define(`torch.dot(${x}.flatten(), ${x}.flatten())`, [x]),
        () => w.define(`${F}.conv1d(${x}.reshape([1, 1, -1]), data([2, 1, 3], ${k}), null, 1, 1)`, [x]),
        () => w.define(`${F}.conv2d(${x}.reshape([1, 1, ${shape[0]}, -1]), data([2, 1, 2, 2], ${k}), null, 1, 1)`, [x]),
        () => w.define(`${F}.maxPool2d(${x}.reshape([1, 1, ${shape[0]}, -1]), 2, 1, 1)`, [x]),
        () => w.define(`${F}.avgPool2d(${x}.reshape([1, 1, ${shape[0]}, -1]), 2, 1, 1)`, [x]),
        () => w.define(`${F}.scaledDotProductAttention(${x}.unsqueeze(0), ${x}.unsqueeze(0), ${x}.unsqueeze(0))`, [x]),
        () => w.define(`${F}.crossEntropy(${x}, indices([${shape[0]}], ${k}, ${last}))`, [`${x}.sum()`]),
        () => w.define(`${F}.embedding(indices([4], ${k}, ${shape[0]}), ${x})`, [x]),
        () => w.define(`torch.einsum('...i->...', ${x})`, [x]),
      ])() !== null
    )
  },
}

const DTYPES = ['int32', 'int64', 'float64', 'float16', 'bfloat16', 'bool', 'uint8', 'int16', 'int8']

export const dtypes = {
  tensors(w, list) {
    for (const t of list) if (w.random.chance(0.5)) t.dtype = w.random.pick(DTYPES)
  },
  write(w) {
    const { random } = w
    const x = w.tensor()
    const y = w.tensor()
    return (
      random.pick([
        () => w.define(`${x}.to('${random.pick(DTYPES)}')`, [x]),
        () => w.define(`${x}.${random.pick(['float', 'long', 'int', 'half', 'bool', 'double', 'byte'])}()`, [x]),
        () => w.define(`${x}.${random.pick(['eq', 'ne', 'lt', 'ge', 'logicalAnd', 'logicalOr'])}(${y})`, [x, y]),
        () => w.define(`${x}.${random.pick(['bitwiseAnd', 'bitwiseOr', 'bitwiseXor'])}(${random.chance(0.4) ? random.int(9) : y})`, [x, y]),
        () => w.define(`${x}.${random.pick(['add', 'mul', 'sub', 'div', 'floorDivide', 'maximum'])}(${y})`, [x, y]),
        () => w.define(`torch.arange(${1 + random.int(5)}).add(1)`, []),
        () => w.define(`${x}.sum()`, [x]),
      ])() !== null
    )
  },
}

/** A random argument for a schema's parameter, as an expression; null if there is none. */
function argumentFor(w, { name, type: { base, list } }) {
  const { random } = w
  if (base === 'Tensor') return list ? `[${[w.tensor(), w.tensor()].join(', ')}]` : w.tensor()
  if (base === 'int' && list) return `[${Array.from({ length: 1 + random.int(2) }, () => random.int(4) - 1).join(', ')}]`
  if (base === 'int') return /dim/.test(name) ? String(random.int(3) - 1) : String(random.int(4))
  if (base === 'float' || base === 'Scalar') return random.pick(NUMBERS)
  if (base === 'bool') return random.pick(['true', 'false'])
  if (base === 'ScalarType') return `'${random.pick(['float32', 'int64', 'float64', 'bool'])}'`
  return base === 'any' ? String(1 + random.int(3)) : null
}

export const table = {
  write(w) {
    const { random, api } = w
    const op = random.pick(api.publicOps.filter(({ path }) => !w.traced || !BY_VALUES.test(path)))
    const args = []
    for (const arg of op.schema.args) {
      if (arg.kwargOnly || (arg.hasDefault && random.chance(0.5))) break
      const made = argumentFor(w, arg)
      if (made === null || made === undefined) break
      args.push(made)
    }
    const call = op.method ? `${args[0]}.${op.path}(${args.slice(1).join(', ')})` : `${op.path}(${args.join(', ')})`
    const operands = args.filter((arg) => w.tensors.includes(arg))
    return (w.define(call, operands) ?? w.define(`${call}[0]`, operands)) !== null
  },
}
