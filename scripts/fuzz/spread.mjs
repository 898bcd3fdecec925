// How far apart two right runs of a program may be, element by element: a forward error bound, carried along an eager run.
//
// Two runs compute the same bits except where sums are added in another order. Any order of n summands is at most (n - 1) · u · Σ|x| from the exact sum, u being half a unit in the last place of 1 (Higham,
// Accuracy and Stability, 4.2), so two orders are at most twice that apart: the spread of a sum. From there it is carried on:
// - by operators that are linear in each argument with coefficients of at least 0 (sums, products of matrices), as f(|x| + spread) - f(|x|), and a spread of their own;
// - by operators that move elements, as these move it; by those that choose elements by size, as its maximum, since an order statistic moves no more than its elements;
// - by operators on single elements, as the largest change of the result, in float64, when every argument is moved up or down by its spread. A step (`ceil`, `gt`) that lies within the spread counts. To
//   that comes the rounding of both results, each at most 4 units in the last place. What a function does between the ends of its argument's spread is of second order, and left out.
// Everything else has no bound: then only the usual tolerance of judge.mjs counts.
//
// Two runs may also have other functions of scalars, as shaders have where WebAssembly code computes in float64. They are named, with how far apart they may be.

const UNIT = { float64: 2 ** -53, float32: 2 ** -24, float16: 2 ** -11, bfloat16: 2 ** -8 }
const BYTES = { float64: 8, int64: 8, float32: 4, int32: 4, float16: 2, bfloat16: 2, int16: 2, int8: 1, uint8: 1, bool: 1 }

/** Linear in each tensor argument, with coefficients of at least 0; how many summands are in an element of the result. */
const LINEAR = {
  sum: ([x], y) => x.numel / Math.max(1, y.numel),
  mean: ([x], y) => x.numel / Math.max(1, y.numel),
  cumsum: ([x]) => x.numel,
  scatter_add: ([x, , , source]) => x.numel + (source?.numel ?? 0),
  mm: ([x]) => x.shape.at(-1),
  bmm: ([x]) => x.shape.at(-1),
  mv: ([x]) => x.shape.at(-1),
  dot: ([x]) => x.numel,
  matmul: ([x]) => x.shape.at(-1),
}
const MOVES =
  /^(?:cat|stack|clone|contiguous|gather|index_select|flip|roll|repeat|\w+_scatter|select_backward|slice_backward|as_strided_backward|scatter_values)$/
const CHOOSES = /^(?:sort|topk|amax|amin|max|min|max_pool2d_with_indices)$/

const UNKNOWN = 'unknown'
/** Corners of a box of more dimensions are not tried. */
const MOST_MOVED = 4

/** The functions of scalars in what an operator computes, and whether it is one of them: then nothing that it adds to their result can cancel it. */
function functionsIn(op, args, Tensor) {
  const operand = { kind: 'const', dtype: 'float32', value: 0.5 }
  const names = op.schema.args.map(({ name }) => name)
  const given = args.map((arg, i) => (arg instanceof Tensor || (typeof arg === 'number' && !op.pointwise.baked?.includes(names[i])) ? operand : arg))
  const root = op.pointwise.compute(...given)
  const found = new Set()
  const visit = (expr) => {
    if (expr.kind === 'call') found.add(expr.op)
    for (const part of expr.args ?? (expr.value?.kind === undefined ? [] : [expr.value])) visit(part)
  }
  visit(root)
  return { found, isOne: root.kind === 'call' && root.args.every(({ kind }) => kind === 'const') }
}

/**
 * Follows an eager run: `around` runs it, `of` says what the spread of a tensor's elements is; null if there is no bound. `functions` are those of scalars that the other run has in other ways, and by how many
 * units in the last place they may differ.
 */
export function spreadTracker({ torch, Tensor, withMode, dispatchBelowAutograd, noGrad, inLibrary }, functions = null) {
  /** The spread of the elements of each storage, a float64 tensor; none: no run differs in them. */
  const spreads = new WeakMap()
  const isTensor = (arg) => arg instanceof Tensor
  const call = (op, args) => dispatchBelowAutograd(op, args)
  const wide = (t) => (/float/.test(t.dtype) ? t.to('float64') : t)
  const mapTensors = (arg, fn) => (isTensor(arg) ? fn(arg) : Array.isArray(arg) ? arg.map((item) => mapTensors(item, fn)) : arg)
  // The bound must not be rounded to the dtype that an operator is asked for.
  const inWide = (args, fn) => args.map((arg) => (typeof arg === 'string' && arg in UNIT ? 'float64' : mapTensors(arg, fn)))
  const spreadOf = (t) => {
    const all = spreads.get(t.storage)
    return all === undefined || all === UNKNOWN ? (all ?? null) : torch.asStrided(all, t.shape, t.strides, t.offset)
  }
  const widely = (result) => (isTensor(result) ? result : result[0]).to('float64')

  /** Arguments with every float tensor `t` replaced by fn(t, spread); other tensors move only where they have a spread. */
  const magnitudes = (args, more) =>
    inWide(args, (t) => {
      if (!/float/.test(t.dtype)) return t
      const spread = more ? spreadOf(t) : null
      return spread === null ? wide(t).abs() : wide(t).abs().add(spread)
    })

  /** All ways to move the arguments that have a spread up and down by it. */
  function corners(args, moved) {
    return Array.from({ length: 2 ** moved.length }, (_, corner) =>
      inWide(args, (t) => {
        const at = moved.indexOf(t)
        if (at < 0) return wide(t)
        const spread = spreadOf(t)
        if (t.dtype === 'bool') return (corner >> at) & 1 ? torch.logicalXor(t, spread.gt(0)) : t
        return wide(t)
          .add(spread.mul((corner >> at) & 1 ? 1 : -1))
          .to(/float/.test(t.dtype) ? 'float64' : t.dtype)
      }),
    )
  }

  /** The spread of what `op` computes: how much of it comes from the arguments, and how many units of which magnitude it rounds; UNKNOWN if there is no bound, null if there is none. */
  function spreadAfter(op, args, tensors) {
    const known = tensors.map(spreadOf)
    const some = known.some((spread) => spread !== null)
    if (known.includes(UNKNOWN)) return UNKNOWN
    const { name } = op
    if (name in LINEAR) {
      const own = widely(call(op, magnitudes(args, false)))
      const carried = some ? widely(call(op, magnitudes(args, true))).sub(own) : torch.zerosLike(own)
      return { carried, units: (y) => 2 * LINEAR[name](args, y) + 2, of: own }
    }
    const isAdded = op.pointwise !== null && op.qualname === 'torch.add' && inLibrary()
    const own = otherFunctions(op, args, tensors)
    if (!some && !isAdded && own === null)
      return op.tags.has('pointwise') || op.tags.has('creation') || MOVES.test(name) || CHOOSES.test(name) ? null : UNKNOWN
    if (MOVES.test(name)) {
      const carried = widely(
        call(
          op,
          inWide(args, (t) => (/float|bool/.test(t.dtype) ? (spreadOf(t) ?? torch.zerosLike(wide(t)).to('float64')) : t)),
        ),
      )
      return { carried, units: () => 0, of: carried }
    }
    if (CHOOSES.test(name)) {
      const largest = Math.max(...known.map((spread) => spread?.max().item() ?? 0))
      const carried = torch.fullLike(widely(call(op, inWide(args, wide))), largest)
      return { carried, units: () => 0, of: carried }
    }
    const moved = [...new Set(tensors.filter((t) => spreadOf(t) !== null))]
    if (op.pointwise === null || moved.length > MOST_MOVED) return UNKNOWN
    const center = widely(call(op, inWide(args, wide)))
    let carried = torch.zerosLike(center)
    for (const at of corners(args, moved)) carried = torch.maximum(carried, widely(call(op, at)).sub(center).abs())
    const rounded = torch.where(carried.gt(0), center.abs().add(carried), 0)
    // The engine adds gradients in an order of its own.
    const sizes = isAdded ? widely(call(op, magnitudes(args, true))) : torch.zerosLike(center)
    // A unit is half of one in the last place.
    if (own !== null) return { carried, units: () => 2 * functions.ulps + 1, of: center.abs().add(carried).add(own) }
    return { carried, units: () => 8, of: rounded.add(sizes) }
  }

  /** What an operator's functions of scalars may add to the size of its result where the other run has other ones; null if it has the same. */
  function otherFunctions(op, args, tensors) {
    if (functions === null || op.pointwise === null) return null
    const { found, isOne } = functionsIn(op, args, Tensor)
    if (!functions.names.some((name) => found.has(name))) return null
    if (isOne) return 0
    return tensors
      .map((t) => wide(t).abs())
      .reduce((a, b) => torch.maximum(a, b))
      .add(1)
  }

  function note(t, after) {
    const { storage } = t
    if (after === UNKNOWN || !(t.dtype in BYTES)) return void spreads.set(storage, UNKNOWN)
    if (after === null && !spreads.has(storage)) return
    const count = Math.floor(storage.nbytes / BYTES[t.dtype])
    const all = spreads.get(storage) ?? torch.zeros([count], { dtype: 'float64' })
    if (all === UNKNOWN) return
    if (all.numel !== count) return void spreads.set(storage, UNKNOWN)
    const spread =
      after === null ? torch.zeros(t.shape, { dtype: 'float64' }) : after.carried.add(after.of.mul(after.units(t) * (UNIT[t.dtype] ?? 0)))
    torch.asStrided(all, t.shape, t.strides, t.offset).copy_(spread)
    spreads.set(storage, all)
  }

  const mode = {
    name: 'spread',
    handle(op, args) {
      const functional = op.functional ?? op
      const tensors = args.flat().filter((arg) => isTensor(arg) && arg.storage !== null)
      const isView = op.tags.has('view')
      const after = isView ? null : attempt(() => noGrad(() => spreadAfter(functional, args, tensors)))
      const before = new Set(op === functional ? tensors.map((t) => t.storage) : [])
      const result = call(op, args)
      if (!isView) for (const t of [result].flat()) if (t.storage !== null && !before.has(t.storage)) noGrad(() => note(t, after))
      return result
    },
  }
  return {
    around: (run) => withMode(mode, run),
    of: (t) => {
      const spread = t.storage === null ? UNKNOWN : noGrad(() => spreadOf(t))
      return spread === UNKNOWN ? null : spread === null ? [] : [spread.toArray()].flat(Infinity)
    },
  }
}

/** What cannot be computed in float64, or moved, has no bound. */
function attempt(fn) {
  try {
    return fn()
  } catch {
    return UNKNOWN
  }
}
