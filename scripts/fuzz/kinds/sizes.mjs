// Programs that use the sizes of their tensors as numbers: in arguments, branches, loops, views and writes to views, and in a cache that grows. For calls whose shapes are drawn anew.
import { line } from '../program.mjs'

/** A dimension of a tensor, and its size as an expression. */
function dimOf(w, x) {
  const dim = w.random.int(w.shape(x).length)
  return { dim, n: `${x}.shape[${dim}]` }
}

/** A tensor with dimensions. */
const withDims = (w) => w.float((name) => w.shape(name).length > 0) ?? w.tensor((name) => w.shape(name).length > 0)

/** A view whose place depends on a size, as an expression. */
function viewBySize(w, x) {
  const { dim, n } = dimOf(w, x)
  return w.random.pick([
    `${x}.narrow(${dim}, 0, ${n} >> 1)`,
    `${x}.narrow(${dim}, Math.min(1, ${n}), Math.max(0, ${n} - 1))`,
    `${x}.slice(${dim}, ${n} >> 1)`,
    `${x}.slice(${dim}, 0, ${n} - 1)`,
    `${x}.slice(${dim}, 0, null, ${n} > 4 ? 3 : 2)`,
    `${x}.select(${dim}, Math.max(0, ${n} - 1))`,
    `${x}.select(${dim}, ${n} >> 1)`,
    `${x}.view(${x}.shape.toReversed())`,
    `${x}.expand([${n}, ...${x}.shape])`,
    `${x}.unsqueeze(0).expand([2, ...${x}.shape])`,
    `${x}.reshape([${n}, -1])`,
    `${x}.view([1, ...${x}.shape, 1])`,
    `${x}.transpose(0, -1)`,
    `${x}.unflatten(${dim}, [${n}, 1])`,
    `torch.asStrided(${x}, [${n}], [1])`,
    `${x}.diagonal(0, 0, -1)`,
  ])
}

export const sizes = {
  setup(w) {
    w.state.cache = w.name('cache')
    w.each(w.state.cache, 'null')
    w.push(line(`let ${w.state.cache} = null`))
  },
  write(w) {
    const { random, state } = w
    const x = withDims(w)
    if (x === undefined) return false
    const { dim, n } = dimOf(w, x)
    const k = random.int(500)
    const last = `${x}.shape.at(-1)`
    const F = 'torch.nn.functional'
    return random.pick([
      () => w.define(viewBySize(w, x), [x]) !== null,
      () => w.define(viewBySize(w, x), [x]) !== null,
      () => w.define(`${x}.mul(${n})`, [x]) !== null,
      () => w.define(`${x}.add(torch.zeros(${x}.shape).add(${n} / 3))`, [x]) !== null,
      () => w.define(`torch.arange(${n}).mul(2)`) !== null,
      () => w.define(`torch.full([${n}, 2], ${n})`) !== null,
      () => w.define(`torch.cat([${x}, ${x}.narrow(${dim}, 0, ${n} >> 1)], ${dim})`, [x]) !== null,
      () => w.define(`${x}.matmul(data([${last}, 3], ${k}))`, [x]) !== null,
      () => w.define(`${x}.matmul(${x}.transpose(-1, 0))`, [x]) !== null,
      () => w.define(`${F}.layerNorm(${x}, [${last}])`, [x]) !== null,
      () => w.define(`${x}.topk(Math.min(2, ${last}))[0]`, [x]) !== null,
      () => w.define(`${x}.sum(${dim}, true).div(${n} + 1)`, [x]) !== null,
      () => w.define(`${x}.mean(${dim})`, [x]) !== null,
      () => w.define(`${x}.softmax(${dim})`, [x]) !== null,
      () => w.define(`${F}.pad(${x}, [${n}, 1])`, [x]) !== null,
      () => w.define(`${x}.roll(${n} >> 1, ${dim})`, [x]) !== null,
      () => w.define(`torch.rand([${n}, 3])`) !== null,
      () => w.define(`(${n} > 3 ? ${x}.sin() : ${x}.cos().mul(2))`, [x]) !== null,
      () => w.define(`(${n} === 1 ? ${x}.add(1) : ${n} === 0 ? ${x}.sub(1) : ${x})`, [x]) !== null,
      () => w.define(`(() => { let t = ${x}; for (let i = 0; i < ${n}; i++) t = t.add(${x}.select(${dim}, i).sum()); return t })()`, [x]) !== null,
      () => w.define(`(() => { let t = ${x}; for (let i = 0; i < Math.min(3, ${n}); i++) t = t.mul(i + 0.5); return t })()`, [x]) !== null,
      // Writes to views, in place.
      () => this.writes(w, x),
      () => this.writes(w, x),
      // A cache that grows; sizes that the program does not choose are on data.
      () =>
        w.define(
          `(${state.cache} = ${state.cache} === null ? ${x}.detach().flatten() : torch.cat([${state.cache}, ${x}.detach().flatten()]).slice(0, 0, 40))`,
          [x],
        ) !== null,
      () => w.statement(`if (${x}.sum().item() > 0.2) note('sum', ${x}.mul(${n}))`),
      () => w.statement(`note('size', [${n}, ${x}.numel])`),
    ])()
  },
  /** A write to a view of a new tensor, to a tensor and to what is broadcast to it. */
  writes(w, x) {
    const { random } = w
    const base = w.define(random.chance(0.7) ? `${x}.clone()` : `${x}.mul(2)`, [x])
    if (base === null) return false
    const view = random.chance(0.7) ? viewBySize(w, base) : base
    const { dim, n } = dimOf(w, base)
    const write = random.pick([
      (t) => `${t}.add_(1)`,
      (t) => `${t}.mul_(${n})`,
      (t) => `${t}.zero_()`,
      (t) => `${t}.fill_(${n})`,
      (t) => `${t}.copy_(${x}.flatten().narrow(0, 0, 1).sum())`,
      (t) => `${t}.add_(${x}.sum(${dim}, true))`,
    ])
    w.statement(`noGrad(() => { const t = ${view}; ${write('t')} })`)
    // A write that does not fit is refused, with these sizes or with others.
    if (random.chance(0.2))
      w.push({
        parts: [
          'try {',
          [line(`noGrad(() => ${base}.clone().add_(data([2, ${n}], 5)))`)],
          `} catch (error) {`,
          [line(`note('refused', error)`)],
          '}',
        ],
      })
    return w.define(`${base}.add(1)`, [base]) !== null
  },
}
