// The arithmetic of folding a batch norm into the layer before it, with the methods of tensors only: fx's fuse and nn.utils.fusion share it.

/** The methods of tensors `T` that folding uses. `D` are their dtypes. */
export interface Foldable<T, D> {
  readonly shape: readonly number[]
  readonly dtype: D
  to(dtype: D): T
  add(other: T | number): T
  sub(other: T): T
  mul(other: T): T
  rsqrt(): T
  reshape(shape: readonly number[]): T
}

/** The numbers of a batch norm in evaluation mode; each tensor has one element for each channel. */
export interface NormState<T> {
  readonly runningMean: T
  readonly runningVar: T
  readonly eps: number
  readonly weight: T | null
  readonly bias: T | null
}

/** [weight, bias] of a layer that include the scale and the shift of a norm. `channels` is the dimension of the weight that has the layer's outputs. */
export function foldNorm<D, T extends Foldable<T, D>>(weight: T, bias: T | null, norm: NormState<T>, channels = 0): readonly [weight: T, bias: T] {
  const mean = norm.runningMean
  const scale = norm.runningVar.add(norm.eps).rsqrt()
  const gain = norm.weight === null ? scale : norm.weight.mul(scale)
  const shape = weight.shape.map((_, i) => (i === channels ? -1 : 1))
  const centred = bias === null ? mean.sub(mean).sub(mean) : bias.sub(mean)
  const shifted = norm.bias === null ? centred.mul(gain) : centred.mul(gain).add(norm.bias)
  return [weight.mul(gain.reshape(shape)).to(weight.dtype), shifted.to((bias ?? weight).dtype)]
}
