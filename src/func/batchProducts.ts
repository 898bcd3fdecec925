// Batching rules of matrix products and convolutions, where the weights may differ from example to example too.
import { dispatch } from '../dispatch/index.ts'
import type { Arg, Result } from '../dispatch/index.ts'
import { InternalError } from '../errors/index.ts'
import { add, bmm, expand, matmul, movedim, reshape, transpose } from '../ops/index.ts'
import { Tensor } from '../tensor/index.ts'
import type { Batch, Rule } from './batch.ts'

const isShared = (t: Arg | undefined, batch: Batch): boolean => !(t instanceof Tensor) || batch.behind(t) === null

/** Products of matrices: a shared one is multiplied with all others at once. */
const product: Rule = (_op, [self, other], batch) => {
  if (!(self instanceof Tensor) || !(other instanceof Tensor)) return null
  return () => matmul(batch.behind(self) ?? self, batch.behind(other) ?? other)
}

const linear: Rule = (op, [input, weight, bias], batch) => {
  if (!(input instanceof Tensor) || !(weight instanceof Tensor)) return null
  const x = batch.whole(input)
  if (isShared(weight, batch) && isShared(bias, batch)) return () => dispatch(op, [x, weight, bias ?? null])
  return () => {
    const rows = reshape(x, [batch.size, -1, input.shape.at(-1) ?? 1])
    const out = bmm(rows, transpose(batch.whole(weight), 1, 2))
    const shifted = bias instanceof Tensor ? add(out, reshape(batch.whole(bias), [batch.size, 1, -1])) : out
    return reshape(shifted, [batch.size, ...input.shape.slice(0, -1), weight.shape[0] ?? 0])
  }
}

/** [B, N, C, ..] as [N, B * C, ..]: the examples become groups of channels. */
const asGroups = (whole: Tensor): Tensor => {
  const [b = 0, n = 0, c = 0, ...rest] = whole.shape
  return reshape(movedim(whole, 0, 1), [n, b * c, ...rest])
}
const fromGroups = (t: Tensor, b: number): Tensor => {
  const [n = 0, c = 0, ...rest] = t.shape
  return movedim(reshape(t, [n, b, c / b, ...rest]), 1, 0)
}
const joined = (whole: Tensor): Tensor => {
  const [b = 0, n = 0, ...rest] = whole.shape
  return reshape(whole, [b * n, ...rest])
}
const split = (t: Tensor, b: number): Tensor => {
  const [n = 0, ...rest] = t.shape
  return reshape(t, [b, n / b, ...rest])
}

const convolution: Rule = (op, [input, weight, bias, stride, padding, dilation, groups], batch) => {
  if (!(input instanceof Tensor) || !(weight instanceof Tensor)) return null
  const rest = [stride ?? null, padding ?? null, dilation ?? null]
  if (isShared(weight, batch) && isShared(bias, batch))
    return () => split(tensorOf(dispatch(op, [joined(batch.whole(input)), weight, bias ?? null, ...rest, groups ?? 1])), batch.size)
  return () => {
    const own = bias instanceof Tensor ? joined(batch.whole(bias)) : null
    const out = dispatch(op, [asGroups(batch.whole(input)), joined(batch.whole(weight)), own, ...rest, Number(groups) * batch.size])
    return fromGroups(tensorOf(out), batch.size)
  }
}

const tensorOf = (result: Result): Tensor => {
  const [first] = result instanceof Tensor ? [result] : result
  if (first === undefined) throw new InternalError('an operator without a result')
  return first
}

/** The gradients of input and weight. What is not needed is empty. */
const convolutionBackward: Rule = (op, [grad, input, weight, stride, padding, dilation, groups, needInput, needWeight], batch) => {
  if (!(grad instanceof Tensor) || !(input instanceof Tensor) || !(weight instanceof Tensor)) return null
  return () => {
    const tensors = [asGroups(batch.whole(grad)), asGroups(batch.whole(input)), joined(batch.whole(weight))]
    const rest = [stride ?? null, padding ?? null, dilation ?? null, Number(groups) * batch.size, needInput ?? false, needWeight ?? false]
    const result = dispatch(op, [...tensors, ...rest])
    const all = result instanceof Tensor ? [result] : result
    const [ofInput, ofWeight] = all
    if (ofInput === undefined || ofWeight === undefined) return all
    const none = (t: Tensor): Tensor => expand(t, [batch.size, 0])
    return [needInput === true ? fromGroups(ofInput, batch.size) : none(ofInput), needWeight === true ? split(ofWeight, batch.size) : none(ofWeight)]
  }
}

/** By the names that declarations have for them. */
export const productRules = { product, linear, convolution, convolutionBackward }
