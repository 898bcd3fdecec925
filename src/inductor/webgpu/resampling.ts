// interpolate and its gradient as grids: one for each dimension, whose elements are weighted sums of elements of a line. Positions and weights are tables.
import { assign, call, cast, constant, declare, dtypeInfo, forLoop, load, local, loopVar, read, store } from '../../kernels/index.ts'
import type { Expr } from '../../kernels/index.ts'
import { passesOf } from '../../ops/nn/sample/resample.ts'
import { Tensor, contiguousStrides } from '../../tensor/index.ts'
import type { GroupGrid } from '../emit/loops.ts'
import type { Buffer, BufferView } from '../ir.ts'
import { GridWriter, constantBuffer, copied, isView, loopsOver, numbersIn, place, temporary } from './gridWriter.ts'
import type { Call, Grids } from './gridWriter.ts'

type Pass = ReturnType<typeof passesOf>[number]

/** One pass; what has weights is computed in float32. */
function passed(name: string, from: BufferView, { axis, table }: Pass, out: Buffer): GroupGrid {
  const { out: size, taps, positions, weights, guarded } = table
  const writer = new GridWriter()
  const loops = loopsOver(from.shape.with(axis, size))
  const [k, t] = [loops[axis] ?? loopVar('k', size), loopVar('t', taps)]
  const entry = place([t, k], [size, 1])
  const position = load(writer.constants(constantBuffer(`${name}_positions`, Int32Array.from(positions), 'int32')), entry)
  const element = writer.load(
    from,
    loops.map((loop, d) => (d === axis ? position : loop)),
  )
  const target = place(loops, contiguousStrides(from.shape.with(axis, size)))
  if (weights === null && taps === 1) {
    const only = load(writer.constants(constantBuffer(`${name}_places`, Int32Array.from(positions), 'int32')), place([k], [1]))
    const chosen = writer.load(
      from,
      loops.map((loop, d) => (d === axis ? only : loop)),
    )
    return writer.grid(name, loops, [store(writer.target(out), target, cast(chosen, out.dtype))])
  }
  const wide = dtypeInfo[from.dtype].floating ? 'float32' : from.dtype
  const weighted = (value: Expr): Expr => {
    if (weights === null) return value
    const weight = load(writer.constants(constantBuffer(`${name}_weights`, Float32Array.from(weights), 'float32')), entry)
    const product = call('mul', value, weight)
    const zero = constant('float32', 0)
    return guarded ? call('where', call('eq', weight, zero), zero, product) : product
  }
  const sum = local('sum', wide)
  return writer.grid(name, loops, [
    declare(sum, constant(wide, 0)),
    forLoop(t, 'serial', [assign(sum, call('add', read(sum), weighted(cast(element, wide))))]),
    store(writer.target(out), target, cast(read(sum), out.dtype)),
  ])
}

export const resampled =
  (isBackward: boolean) =>
  ({ name, args: [self, dims, size, mode, scale, align, antialias], outs: [out] }: Call): Grids => {
    if (!isView(self) || out === undefined) return null
    const like = Tensor.fake({ shape: self.shape, dtype: self.dtype })
    const how = [String(mode), numbersIn(scale), align === true, antialias === true] as const
    const passes = passesOf(like, numbersIn(dims), numbersIn(size), how, isBackward)
    if (passes.length === 0) return [copied(name, self, out, contiguousStrides(self.shape), 0)]
    let from = self
    return passes.map((pass, i) => {
      const shape = from.shape.with(pass.axis, pass.table.out)
      const dtype = dtypeInfo[self.dtype].floating ? 'float32' : self.dtype
      const to = i === passes.length - 1 ? out : temporary(`${name}_${i}`, shape, dtype)
      const grid = passed(`${name}_${i}`, from, pass, to)
      from = { buffer: to, shape, strides: contiguousStrides(shape), offset: 0, dtype: to.dtype }
      return grid
    })
  }
