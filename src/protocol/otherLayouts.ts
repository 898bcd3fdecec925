// What messages about shapes add where the values are probably in the layout of another library: images with the channels last, kernels with the outputs last.

/** The end of a message about `name` of shape `sizes`, which lacks `channels` in dimension `at`: how to permute it if they are last; else nothing. */
export function channelsLastHint(name: string, sizes: readonly number[], channels: number, at = 1): string {
  const last = sizes.length - 1
  if (sizes.length < at + 2 || sizes[at] === channels || sizes[last] !== channels) return ''
  const dims = [...sizes.keys()]
  return ` Its channels seem to be last, as in NHWC; here they are dimension ${at}, as in NCHW: write ${name}.permute([${[...dims.slice(0, at), last, ...dims.slice(at, last)].join(', ')}]).`
}

/** The end of a message about weights `name` whose shape should be `wanted`: how to permute them if that is all; else nothing. */
export function weightLayoutHint(name: string, given: readonly number[], wanted: readonly number[]): string {
  if (given.length !== wanted.length || given.length < 2 || given.join() === wanted.join()) return ''
  const dims = [...given.keys()]
  const [outputsLast, inputsLast] = [
    [...dims.slice(-2).reverse(), ...dims.slice(0, -2)],
    [0, ...dims.slice(-1), ...dims.slice(1, -1)],
  ]
  const order = [outputsLast, inputsLast].find((dimensions) => dimensions.every((dim, i) => given[dim] === wanted[i]))
  if (order === undefined) return ''
  return given.length === 2
    ? ` Transposed it fits: write ${name}.t().`
    : ` It fits with the channels before the sizes of the kernel: write ${name}.permute([${order.join(', ')}]).`
}
