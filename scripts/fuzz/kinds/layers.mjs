// Kinds of statements with larger operators: layers, writes by index, windows, linear algebra, and operators whose shapes depend on data.
import { line } from '../program.mjs'

const F = 'torch.nn.functional'

/** A tensor of the given shape that depends on one in scope, as an expression. */
function shaped(w, shape, seed) {
  const x = w.float()
  const made = `data([${shape.join(', ')}], ${seed})`
  return x === undefined ? made : `${made}.add(${x}.flatten().sum().mul(0.125))`
}

/** Layers by what makes them, and the shape of their input. */
const LAYERS = [
  ['new nn.Linear(3, 4)', [2, 3]],
  ['new nn.LayerNorm(3)', [2, 3]],
  ['new nn.RMSNorm(3)', [2, 3]],
  ['new nn.BatchNorm1d(3)', [4, 3]],
  ['new nn.BatchNorm1d(3).eval()', [4, 3]],
  ['new nn.GroupNorm(2, 4)', [2, 4, 3]],
  ['new nn.InstanceNorm1d(3)', [2, 3, 5]],
  ['new nn.Conv1d(2, 3, 3, { padding: 1 })', [1, 2, 5]],
  ['new nn.Conv2d(2, 3, 2, { stride: 2, padding: 1 })', [1, 2, 4, 3]],
  ['new nn.Conv2d(2, 4, 3, { groups: 2, dilation: 2, padding: 2 })', [1, 2, 5, 5]],
  ['new nn.ConvTranspose1d(2, 3, 3, { stride: 2 })', [1, 2, 4]],
  ['new nn.PReLU()', [2, 3]],
  ['new nn.Sequential(new nn.Linear(3, 3), new nn.Dropout(0.5), new nn.ReLU())', [2, 3]],
  ['new nn.AdaptiveAvgPool2d([2, 2])', [1, 2, 5, 3]],
  ['new nn.MaxPool1d(2)', [1, 2, 5]],
  ['new nn.LPPool1d(2, 2)', [1, 2, 6]],
  ['new nn.ReflectionPad1d(2)', [1, 2, 4]],
  ['new nn.PixelShuffle(2)', [1, 4, 2, 2]],
  ['new nn.Bilinear(3, 3, 2)', [2, 3], 2],
  ['new nn.LSTM(3, 2)', [4, 1, 3]],
  ['new nn.GRU(3, 2)', [3, 1, 3]],
  ['new nn.RNN(3, 2)', [3, 1, 3]],
  ['new nn.LSTMCell(3, 2)', [2, 3]],
]

export const layers = {
  setup(w) {
    const { random, state } = w
    const [made, shape, count = 1] = random.pick(LAYERS)
    state.layer = w.name('layer')
    state.layerInput = { shape, count }
    w.each(state.layer, `(torch.manualSeed(3), ${made})`)
    w.push(line(`const ${state.layer} = (torch.manualSeed(3), ${made})`))
  },
  write(w) {
    const { random, state } = w
    const { layer, layerInput } = state
    const inputs = Array.from({ length: layerInput.count }, (_, i) => shaped(w, layerInput.shape, i + random.int(20)))
    const call = `${layer}(${inputs.join(', ')})`
    return random.pick([
      () => (w.define(call) ?? w.define(`${call}[0]`)) !== null,
      () => (w.define(call) ?? w.define(`${call}[0]`)) !== null,
      () =>
        w.traced !== true && w.statement(`${layer}.${random.pick(['train()', 'eval()', 'zeroGrad()', 'requiresGrad_(false)', 'requiresGrad_()'])}`),
      () => w.traced !== true && w.statement(`note('training', ${layer}.training)`),
    ])()
  },
  after(w) {
    const { layer } = w.state
    w.push(line(`note('buffers', [...${layer}.buffers()])`))
    if (!w.traced) w.push(line(`note('parameters', [...${layer}.parameters()].map((p) => [p, p.grad]))`))
  },
}

/** Gathers, scatters, and other operators that take indices. */
export const indexing = {
  write(w) {
    const { random } = w
    const x = w.tensor((name) => w.shape(name).length > 0 && w.value(name).numel > 0)
    if (x === undefined) return false
    const shape = w.shape(x)
    const [rows] = shape
    const at = `indices([${shape.with(0, 2).join(', ')}], ${random.int(50)}, ${rows})`
    const some = `indices([2], ${random.int(50)}, ${rows})`
    const src = `${x}.slice(0, 0, 1).expand([2${shape
      .slice(1)
      .map((n) => `, ${n}`)
      .join('')}]).mul(2)`
    return (
      random.pick([
        () => w.define(`${x}.gather(0, ${at})`, [x]),
        () => w.define(`${x}.scatter(0, ${at}, 3)`, [x]),
        () => w.define(`${x}.scatterAdd(0, ${at}, ${src})`, [x]),
        () => w.define(`${x}.scatterReduce(0, ${at}, ${src}, '${random.pick(['sum', 'amax', 'amin', 'prod', 'mean'])}')`, [x]),
        () => w.define(`${x}.indexSelect(0, ${some})`, [x]),
        () => w.define(`${x}.indexAdd(0, ${some}, ${src})`, [x]),
        () => w.define(`${x}.indexCopy(0, indices([1], 3, ${rows}), ${x}.slice(0, 0, 1).mul(2))`, [x]),
        () => w.define(`${x}.indexFill(0, ${some}, 2)`, [x]),
        () => w.define(`${x}.index([${some}])`, [x]),
        () => w.define(`${x}.indexPut([${some}], ${src}, ${random.pick(['true', 'false'])})`, [x]),
        () => (w.statement(`${w.traced ? '' : 'noGrad(() => '}${x}.mul(1).indexPut_([${some}], ${src})${w.traced ? '' : ')'}`) ? x : null),
        () => w.define(`${x}.takeAlongDim(${at}, 0)`, [x]),
        () => w.define(`${x}.take(indices([3], ${random.int(9)}, ${w.value(x).numel}))`, [x]),
        () => w.define(`${x}.selectScatter(${x}.select(0, 0).mul(2), 0, ${random.int(rows)})`, [x]),
        () => w.define(`${x}.sliceScatter(${x}.slice(0, 0, 1).neg(), 0, 0, 1)`, [x]),
        () => w.define(`${x}.sort(0)[${random.int(2)}]`, [x]),
        () => w.define(`${x}.topk(1, 0)[${random.int(2)}]`, [x]),
        () => w.define(`${x}.roll(1, 0)`, [x]),
        () => w.define(`${x}.flip([0])`, [x]),
        () => w.define(`torch.searchsorted(torch.arange(4).float(), ${x}.flatten().float())`, [x]),
      ])() !== null
    )
  },
}

/** Images: interpolation, padding, windows, grids. */
export const images = {
  write(w) {
    const { random } = w
    const x = shaped(w, [1, 2, 4, 3], random.int(30))
    const mode = random.pick(['nearest', 'bilinear', 'bicubic', 'area'])
    return (
      random.pick([
        () => w.define(`${F}.interpolate(${x}, { scaleFactor: 2, mode: '${mode}' })`),
        () => w.define(`${F}.interpolate(${x}, { size: [3, 5], mode: '${mode}' })`),
        () => w.define(`${F}.pad(${x}, [1, 2, 0, 1], '${random.pick(['constant', 'reflect', 'replicate', 'circular'])}')`),
        () => w.define(`${F}.unfold(${x}, [2, 2])`),
        () => w.define(`${F}.gridSample(${x}, data([1, 2, 2, 2], ${random.int(9)}).tanh())`),
        () => w.define(`${F}.adaptiveAvgPool2d(${x}, [2, 2])`),
        () => w.define(`${F}.adaptiveMaxPool2d(${x}, [2, 1])`),
        () => w.define(`${F}.normalize(${x}, 2, 1)`),
        () => w.define(`${F}.localResponseNorm(${x}, 2)`),
        () => w.define(`${F}.pixelUnshuffle(${F}.pad(${x}, [0, 1]), 2)`),
        () => w.define(`${F}.instanceNorm(${x})`),
      ])() !== null
    )
  },
}

/** Matrices that are well conditioned: rounding must not decide. */
export const linearAlgebra = {
  write(w) {
    const { random } = w
    const square = `${shaped(w, [3, 3], random.int(30))}.sin().mul(0.25).add(torch.eye(3).mul(2))`
    const symmetric = `((m) => m.matmul(m.T))(${square})`
    return (
      random.pick([
        () => w.define(`torch.linalg.det(${square})`),
        () => w.define(`torch.linalg.inv(${square})`),
        () => w.define(`torch.linalg.solve(${square}, data([3, 2], ${random.int(9)}))`),
        () => w.define(`torch.linalg.cholesky(${symmetric})`),
        () => w.define(`torch.linalg.eigvalsh(${symmetric})`),
        () => w.define(`torch.linalg.qr(${square})[1].abs()`),
        () => w.define(`torch.linalg.svdvals(${square})`),
        () => w.define(`torch.linalg.slogdet(${square})[1]`),
        () => w.define(`torch.linalg.${random.pick(['vectorNorm', 'matrixNorm'])}(${square})`),
        () => w.define(`torch.linalg.matrixPower(${square}, 3)`),
        () => w.define(`torch.linalg.multiDot([${square}, data([3, 2], 1), data([2, 2], 2)])`),
        () => w.define(`torch.kron(${square}, data([2, 1], 3))`),
        () => w.define(`torch.triu(${square}, 1)`),
        () => w.define(`torch.cdist(data([2, 3], 5), ${square})`),
        () => w.define(`torch.cov(${square})`),
      ])() !== null
    )
  },
}

/** Shapes that depend on data: each ends the graph, or does not get into it. */
export const byValues = {
  write(w) {
    const { random } = w
    const x = w.tensor((name) => w.program.params.includes(name))
    if (x === undefined) return false
    return (
      random.pick([
        () => w.define(`${x}.nonzero()`, [x]),
        () => w.define(`${x}.gt(0).argwhere()`, [x]),
        () => w.define(`${x}.maskedSelect(${x}.gt(0.25))`, [x]),
        () => w.define(`${x}[${x}.gt(0)]`, [x]),
        () => w.define(`${x}.index([${x}.gt(0)])`, [x]),
        () => w.define(`torch.unique(${x}.sign())`, [x]),
        () => w.define(`torch.uniqueConsecutive(${x}.sign().flatten())`, [x]),
        () => w.define(`torch.bincount(${x}.gt(0).flatten().long())`, [x]),
        () => w.define(`torch.repeatInterleave(${x}.flatten(), 2)`, [x]),
        () => w.define(`torch.repeatInterleave(${x}.flatten(), ${x}.flatten().gt(0).long())`, [x]),
        () => w.define(`${x}.maskedScatter(${x}.gt(0), ${x}.flatten().neg())`, [x]),
        () => w.define(`torch.histc(${x}.float(), 4, -2, 2)`, [x]),
        () => w.define(`torch.zeros([${x}.gt(0).sum().item() + 1])`, [x]),
        () => w.define(`${x}.flatten().slice(0, 0, Number(${x}.gt(0).sum().item()))`, [x]),
      ])() !== null
    )
  },
}

/** Loss functions. */
export const losses = {
  write(w) {
    const { random } = w
    const x = shaped(w, [2, 3], random.int(30))
    const k = random.int(30)
    const reduction = random.pick(['', `, { reduction: '${random.pick(['sum', 'none', 'mean'])}' }`])
    return (
      random.pick([
        () => w.define(`${F}.mseLoss(${x}, data([2, 3], ${k})${reduction})`),
        () => w.define(`${F}.huberLoss(${x}, data([2, 3], ${k})${reduction})`),
        () => w.define(`${F}.klDiv(${x}.logSoftmax(1), data([2, 3], ${k}).softmax(1)${reduction})`),
        () => w.define(`${F}.binaryCrossEntropyWithLogits(${x}, data([2, 3], ${k}).sigmoid()${reduction})`),
        () => w.define(`${F}.binaryCrossEntropy(${x}.sigmoid(), data([2, 3], ${k}).sigmoid()${reduction})`),
        () => w.define(`${F}.nllLoss(${x}.logSoftmax(1), indices([2], ${k}, 3)${reduction})`),
        () => w.define(`${F}.crossEntropy(${x}, indices([2], ${k}, 3)${reduction})`),
        () => w.define(`${F}.crossEntropy(${x}, indices([2], ${k}, 3), { labelSmoothing: 0.1, ignoreIndex: 1 })`),
        () => w.define(`${F}.cosineSimilarity(${x}, data([2, 3], ${k}))`),
        () => w.define(`${F}.tripletMarginLoss(${x}, data([2, 3], ${k}), data([2, 3], ${k + 1}))`),
        () => w.define(`${F}.gaussianNllLoss(${x}, data([2, 3], ${k}), data([2, 3], ${k}).abs().add(0.5))`),
        () => w.define(`${F}.softMarginLoss(${x}, data([2, 3], ${k}).sign()${reduction})`),
        () => w.define(`${F}.embeddingBag(indices([2, 2], ${k}, 2), ${x})`),
      ])() !== null
    )
  },
}
