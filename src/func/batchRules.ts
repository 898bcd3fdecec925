// How operators treat a batch: the rules that their declarations name. One for all that compute element by element, one for those that name dimensions, and few others.
import { dispatch, isArgList } from '../dispatch/index.ts'
import type { Arg, BatchRule, OpDef, Result } from '../dispatch/index.ts'
import { expand, reshape, unsqueeze } from '../ops/index.ts'
import { Tensor } from '../tensor/index.ts'
import type { Batch, Rule } from './batch.ts'
import { productRules } from './batchProducts.ts'

/** An argument with `change` applied to its tensors. */
function mapTensors(arg: Arg, change: (tensor: Tensor) => Tensor): Arg {
  if (arg instanceof Tensor) return change(arg)
  return isArgList(arg) ? arg.map((item) => mapTensors(item, change)) : arg
}

const tensorsIn = (args: readonly Arg[]): Tensor[] => args.flatMap((arg) => (arg instanceof Tensor ? [arg] : isArgList(arg) ? tensorsIn(arg) : []))

/** Element by element: examples of fewer dimensions get ones in front, after the batch. */
const elementwise: Rule = (op, args, batch) => () => {
  const rank = Math.max(...tensorsIn(args).map((t) => t.ndim))
  const aligned = (t: Tensor): Tensor => {
    const whole = batch.behind(t)
    if (whole === null || t.ndim === rank) return whole ?? t
    return reshape(whole, [batch.size, ...Array.from({ length: rank - t.ndim }, () => 1), ...t.shape])
  }
  return dispatch(
    op,
    args.map((arg) => mapTensors(arg, aligned)),
  )
}

/** Arguments that name dimensions. */
const DIMENSIONS: ReadonlySet<string> = new Set(['dim', 'dims', 'dim0', 'dim1', 'dim2'])
/** Arguments that hold the sizes of the input. */
const SIZES: ReadonlySet<string> = new Set(['inputSizes'])

const shift = (dim: number): number => (dim >= 0 ? dim + 1 : dim)

/** Operators that treat all dimensions alike but those that they name: these move by one. */
const dimensions: Rule = (op, args, batch) => {
  const [self] = tensorsIn(args)
  const rank = self?.ndim ?? 0
  const named = op.schema.args.map(({ name }) => name)
  // A number has no dimension that could be named, though PyTorch accepts 0.
  if (rank === 0 && op.name !== 'unsqueeze') return null
  const all = Array.from({ length: rank }, (_, d) => d + 1)
  const values = args.map((arg, i): Arg | undefined => {
    const name = named[i] ?? ''
    if (DIMENSIONS.has(name)) {
      if (typeof arg === 'number') return shift(arg)
      if (isArgList(arg) && arg.length > 0) return arg.map((dim) => (typeof dim === 'number' ? shift(dim) : dim))
      return op.reduction === null ? undefined : all
    }
    if (SIZES.has(name) && isArgList(arg)) return [batch.size, ...arg]
    return mapTensors(arg, (t) => batch.whole(t))
  })
  if (values.some((value) => value === undefined)) return null
  return () =>
    dispatch(
      op,
      values.map((value) => value ?? null),
    )
}

/** Reductions; a number is a vector of one. */
const reduction: Rule = (op, args, batch) => {
  const [self, , keepdim] = args
  if (!(self instanceof Tensor) || self.ndim > 0) return dimensions(op, args, batch)
  return () => dispatch(op, [unsqueeze(batch.whole(self), 1), [1], keepdim === true ? false : (keepdim ?? false)])
}

/** Operators that accept any number of dimensions in front, of these arguments; the other tensors must be shared by the examples. */
const leading =
  (names: readonly string[]): Rule =>
  (op, args, batch) => {
    const own = (i: number): boolean => names.includes(op.schema.args[i]?.name ?? '')
    if (args.some((arg, i) => !own(i) && arg instanceof Tensor && batch.behind(arg) !== null)) return null
    return () => {
      const result = dispatch(
        op,
        args.map((arg, i) => (own(i) && arg instanceof Tensor ? batch.whole(arg) : arg)),
      )
      return result instanceof Tensor ? result : result.map((t) => (t.shape[0] === 0 ? absent(t, batch) : t))
    }
  }

/** A result that the arguments do not ask for is empty, for each example too. */
const absent = (empty: Tensor, batch: Batch): Tensor => expand(empty, [batch.size, 0])

/** The same for operators with one dimension of their own in front: the batch is folded into it. `rank` is that of the argument named first. */
const folded =
  (rank: number, names: readonly string[]): Rule =>
  (op, args, batch) => {
    const own = (i: number): boolean => names.includes(op.schema.args[i]?.name ?? '')
    const first = args[op.schema.args.findIndex(({ name }) => name === names[0])]
    if (!(first instanceof Tensor)) return null
    if (first.ndim < rank) return leading(names)(op, args, batch)
    if (args.some((arg, i) => !own(i) && arg instanceof Tensor && batch.behind(arg) !== null)) return null
    const fold = (t: Tensor): Tensor => reshape(batch.whole(t), [batch.size * (t.shape[0] ?? 1), ...t.shape.slice(1)])
    const unfold = (t: Tensor): Tensor => reshape(t, [batch.size, (t.shape[0] ?? 0) / batch.size, ...t.shape.slice(1)])
    return () => {
      const result = dispatch(
        op,
        args.map((arg, i) => (own(i) && arg instanceof Tensor ? fold(arg) : arg)),
      )
      return result instanceof Tensor ? unfold(result) : result.map(unfold)
    }
  }

/** New sizes of an example. */
const sizes: Rule = (op, args, batch) => {
  const [self, size] = args
  if (!(self instanceof Tensor) || !isArgList(size)) return null
  const whole = batch.whole(self)
  // The layout behind may need a copy where that of an example does not.
  if (op.name === 'view') return () => reshape(whole, [batch.size, ...(self.shape.length === 0 && size.length === 0 ? [] : inferred(size, self))])
  const ones = Array.from({ length: Math.max(0, size.length - self.ndim) }, () => 1)
  return () => dispatch(op, [reshape(whole, [batch.size, ...ones, ...self.shape]), [batch.size, ...size]])
}

/** Sizes of which one may be -1, of an example. */
function inferred(size: readonly Arg[], self: Tensor): readonly number[] {
  const known = size.filter((n): n is number => typeof n === 'number')
  const product = known.filter((n) => n !== -1).reduce((a, b) => a * b, 1)
  return known.map((n) => (n === -1 ? (product === 0 ? 0 : self.numel / product) : n))
}

const permute: Rule = (op, args, batch) => {
  const [self, dims] = args
  if (!(self instanceof Tensor) || !isArgList(dims)) return null
  return () => dispatch(op, [batch.whole(self), [0, ...dims.map((dim) => (typeof dim === 'number' ? (dim < 0 ? dim + self.ndim : dim) + 1 : dim))]])
}

/** `squeeze` without a dimension: that of the batch stays, even of a batch of one. */
const squeeze: Rule = (op, args, batch) => {
  const [self, dim] = args
  if (!(self instanceof Tensor) || dim !== null) return dimensions(op, args, batch)
  return () => reshape(batch.whole(self), [batch.size, ...self.shape.filter((n) => n !== 1)])
}

/** `cat` passes over tensors of shape [0] beside others of more dimensions. */
const cat: Rule = (op, [tensors, dim], batch) => {
  if (!isArgList(tensors)) return null
  const joined = tensors.filter((t) => t instanceof Tensor && (t.ndim !== 1 || t.numel > 0))
  return dimensions(op, [joined.length === 0 ? tensors : joined, dim ?? 0], batch)
}

/** The position of the greatest, of all elements if no dimension is named. */
const argExtreme: Rule = (op, args, batch) => {
  const [self, dim, keepdim] = args
  if (!(self instanceof Tensor) || dim !== null) return dimensions(op, args, batch)
  if (keepdim === true) return null
  return () => dispatch(op, [reshape(batch.whole(self), [batch.size, self.numel]), 1, false])
}

/** The rules by the names that declarations have for them. */
const RULES: Readonly<Record<Extract<BatchRule, string>, Rule>> = {
  elementwise,
  dimensions,
  sizes,
  permute,
  squeeze,
  cat,
  argExtreme,
  ...productRules,
}

function declaredRule(rule: BatchRule): Rule | null {
  if (typeof rule === 'string') return RULES[rule]
  if ('leading' in rule) return leading(rule.leading)
  return 'folded' in rule ? folded(rule.rank, rule.folded) : null
}

/** What computes the operator on these arguments, or null. */
export function ruleOf(op: OpDef, args: readonly Arg[], batch: Batch): (() => Result) | null {
  const { pointwise } = op.functional ?? op
  const rule = op.vmap !== null ? declaredRule(op.vmap) : pointwise !== null ? elementwise : op.reduction !== null ? reduction : null
  return rule === null ? null : rule(op, args, batch)
}
