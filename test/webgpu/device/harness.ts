// Runs grids on the GPU next to the reference interpreter.
import { bufferParam, cast, call, forLoop, load, at, loopVar, store } from '../../../src/kernels/ir/loopIr.ts'
import type { Grid } from '../../../src/kernels/ir/grid.ts'
import type { BufferParam, Expr, Kernel, Stmt } from '../../../src/kernels/ir/loopIr.ts'
import { dtypeInfo } from '../../../src/kernels/numbers/dtype.ts'
import type { DType, ElementValue, StorageArray } from '../../../src/kernels/numbers/dtype.ts'
import { readElement } from '../../../src/kernels/numbers/elements.ts'
import { scalarOps } from '../../../src/kernels/scalars/rareOps.ts'
import type { ScalarOp } from '../../../src/kernels/scalars/scalarOps.ts'
import { emitGrid } from '../../../src/kernels/wgsl/emitGrid.ts'
import { wordsPer } from '../../../src/kernels/wgsl/shader.ts'
import { requestDevice } from '../../../src/gpu/device.ts'
import type { Device } from '../../../src/gpu/device.ts'
import { DeviceProgram } from '../../../src/gpu/program.ts'
import { bytesOf, wordsOf } from '../../../src/inductor/webgpu/words.ts'
import { Tensor, tensorFromBytes } from '../../../src/tensor/index.ts'
import { arrayOf, runOracle } from '../../kernels/harness.ts'

/** What is computed for an element: statements, and the value that they lead to. */
export interface Made {
  readonly body: readonly Stmt[]
  readonly value: Expr
}

/** The kernel out[i] = f(inputs[i]...) over `length` elements: as a grid, and as a kernel. */
function pointwise(
  length: number,
  dtypes: readonly DType[],
  make: (...values: readonly Expr[]) => Made,
): { grid: Grid; kernel: Kernel; params: readonly BufferParam[] } {
  const i = loopVar('i', length)
  const inputs = dtypes.map((dtype, k) => bufferParam(`a${k}`, dtype))
  const { body: before, value } = make(...inputs.map((input) => load(input, at([i, 1]))))
  const out = bufferParam('out', value.dtype, 'write')
  const params = [out, ...inputs]
  const body = [...before, store(out, at([i, 1]), value)]
  return {
    params,
    grid: { name: 'case', params, scratch: [], loops: [i], body },
    kernel: { name: 'case', params, body: [forLoop(i, 'serial', body)] },
  }
}

export interface Outcome {
  readonly dtype: DType
  readonly device: readonly ElementValue[]
  readonly oracle: readonly ElementValue[]
}

const valuesOf = (dtype: DType, data: StorageArray): readonly ElementValue[] =>
  Array.from({ length: data.length }, (_, i) => readElement(dtype, data, i) ?? NaN)

let device: Promise<Device> | null = null

/** The GPU, as this thread has it. */
export const deviceHere = async (): Promise<Device> => (device ??= requestDevice({}))

/** Runs a function of elements on the GPU and in the interpreter. */
export const runPointwise = async (inputs: readonly Given[], make: (...values: readonly Expr[]) => Expr): Promise<Outcome> =>
  runStatements(inputs, (...values) => ({ body: [], value: make(...values) }))

interface Given {
  readonly dtype: DType
  readonly values: readonly ElementValue[]
}

/** The same for functions of several statements. */
export async function runStatements(inputs: readonly Given[], make: (...values: readonly Expr[]) => Made): Promise<Outcome> {
  const length = inputs[0]?.values.length ?? 0
  const { grid, kernel, params } = pointwise(
    length,
    inputs.map(({ dtype }) => dtype),
    make,
  )
  const shader = emitGrid(grid)
  const [out] = params
  if (out === undefined) throw new Error('no result')
  const places = new Map<unknown, number>()
  let end = 0
  for (const param of params) {
    places.set(param, end)
    end += length * wordsPer(param.dtype) + 8
  }
  const words = new Uint32Array(4 * Math.ceil(shader.words.length / 4))
  shader.words.forEach((word, k) => {
    words[k] = word.kind === 'threads' ? length : word.kind === 'memory' ? (places.get(word.memory) ?? 0) : 0
  })
  const program = await DeviceProgram.create(
    await deviceHere(),
    [{ name: 'case', nodes: [], lines: [], code: shader.code, slabs: 1, threads: length, team: 1, words }],
    [end],
  )
  const arrays = inputs.map(({ dtype, values }) => arrayOf(dtype, values))
  inputs.forEach(({ dtype }, k) => {
    const data = arrays[k]
    if (data === undefined) return
    const tensor: Tensor = tensorFromBytes(new Uint8Array(data.buffer), [length], dtype)
    program.upload({ slab: 0, start: places.get(params[k + 1]) ?? 0, words: wordsOf(tensor, length) })
  })
  const [read] = await program.run(0, 1, [{ slab: 0, start: 0, length: length * wordsPer(out.dtype) }])
  program.destroy()
  const bytes = bytesOf(read ?? new Uint32Array(), out.dtype)
  const onDevice = new dtypeInfo[out.dtype].array(bytes.slice().buffer)
  const args = Object.fromEntries(arrays.map((data, k) => [`a${k}`, data]))
  const oracle = runOracle(kernel, { ...args, out: arrayOf(out.dtype, length) })['out'] ?? onDevice
  return { dtype: out.dtype, device: valuesOf(out.dtype, onDevice), oracle: valuesOf(out.dtype, oracle) }
}

export const runOp = async (op: ScalarOp, dtype: DType, operands: readonly (readonly ElementValue[])[]): Promise<Outcome> =>
  runPointwise(
    operands.map((values, k) => ({ dtype: k < scalarOps[op].conditions ? 'bool' : dtype, values })),
    (...values) => call(op, ...values),
  )

export const runCast = async (from: DType, to: DType, values: readonly ElementValue[]): Promise<Outcome> =>
  runPointwise([{ dtype: from, values }], (value) => cast(value, to))

const float = new Float32Array(1)
const bits = new Int32Array(float.buffer)
function placeOf(value: number): number {
  float[0] = value
  const b = bits[0] ?? 0
  return b < 0 ? -(b & 0x7fffffff) : b
}

const isSubnormal = (value: number): boolean => value !== 0 && Math.abs(value) < 2 ** -126

/** Floats in units of the last place; infinite where one is NaN and the other is not. Results that are subnormal, and 0 in place of these, count as equal. */
export function ulps(device: number, oracle: number): number {
  if (Number.isNaN(device) || Number.isNaN(oracle)) return Number.isNaN(device) === Number.isNaN(oracle) ? 0 : Infinity
  if (
    (isSubnormal(oracle) || oracle === 0 || Math.abs(oracle) === 2 ** -126) &&
    (device === 0 || isSubnormal(device) || Math.abs(device) === 2 ** -126)
  )
    return 0
  return Math.abs(placeOf(device) - placeOf(oracle))
}

/** Numbers that differ by more than 4 units in the last place, and by more than 1e-5 of the largest value. */
export function differs(got: ArrayLike<number>, want: ArrayLike<number>): boolean {
  const values = Array.from(want)
  const largest = Math.max(...values.map(Math.abs).filter(Number.isFinite), 0)
  return values.some((value, i) => ulps(got[i] ?? NaN, value) > 4 && !(Math.abs(value - (got[i] ?? NaN)) <= 1e-5 * largest))
}
