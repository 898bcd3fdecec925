// Every operator of the table, on tensors that are on the GPU: what the CPU gives, or a refusal that names an operator. The refused are listed in refused.ts, both ways.
import { beforeAll, expect, test } from 'vitest'
import { torch } from 'tensorfx'
import { UnsupportedError } from '../../../src/errors/index.ts'
import { DeviceReadError, init } from 'tensorfx/webgpu'
import { Tensor } from '../../../src/tensor/index.ts'
import { tenth } from '../../helpers/rotation.ts'
import { builtInOps } from '../../ops/builtInOps.ts'
import { allValueCases, replace, tensorOf } from '../../ops/valueCases.ts'
import { differs } from './harness.ts'
import { READS_DATA, REFUSED } from './refused.ts'

beforeAll(async () => init({ thread: false }))

const cases = await allValueCases()
const judged = builtInOps().flatMap((op) => {
  const [one] = cases.get(op.qualname) ?? []
  return one === undefined ? [] : [{ op, one }]
})

const tensorsIn = (value: unknown): readonly Tensor[] => (value instanceof Tensor ? [value] : Array.isArray(value) ? value.flatMap(tensorsIn) : [])

test.each(tenth(judged, ({ op }) => op.qualname))('$op.qualname', async ({ op, one }) => {
  const run = (place: (tensor: Tensor) => Tensor): readonly Tensor[] => {
    torch.manualSeed(1)
    const args = replace(one.args, (plain) => place(tensorOf(plain, 'float32'))) as unknown[]
    return tensorsIn([Reflect.apply(op.fn, null, args), args])
  }
  const want = run((tensor) => tensor)
  let got: readonly Tensor[]
  try {
    got = run((tensor) => tensor.to('webgpu'))
  } catch (error) {
    if (error instanceof DeviceReadError) return expect(READS_DATA).toContain(op.qualname)
    if (!(error instanceof UnsupportedError)) throw error
    expect(error.message).toMatch(/^(?:torch\.\S+ has no form for tensors on webgpu|webgpu has no \w+): /)
    return expect(REFUSED, error.message).toContain(op.qualname)
  }
  expect([...REFUSED, ...READS_DATA], 'it is computed now, so that it need not be listed').not.toContain(op.qualname)
  // Without a tensor among the arguments nothing asks for the GPU.
  const device = one.args.some((arg) => tensorsIn(replace(arg, (plain) => tensorOf(plain, 'float32'))).length > 0) ? 'webgpu' : 'cpu'
  expect(got.map((tensor) => [tensor.dtype, tensor.shape, tensor.strides, tensor.device])).toEqual(
    want.map((tensor) => [tensor.dtype, tensor.shape, tensor.strides, device]),
  )
  for (const [i, tensor] of got.entries()) {
    const [here, there] = [want[i]?.toTypedArray() ?? [], await tensor.toTypedArrayAsync()]
    const isExact = !tensor.isFloatingPoint()
    expect(isExact ? Array.from(there).some((value, k) => value !== here[k]) : differs(there, here), `${String(there)} for ${String(here)}`).toBe(
      false,
    )
  }
})
