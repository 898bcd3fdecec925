// Graphs of one operator: where inductor says that an eager kernel computes the same bits, a compiled function may answer its calls itself.
import { describe, expect, it } from 'vitest'
import { compile, noGrad, torch } from 'tensorfx'
import type { DType, Tensor } from 'tensorfx'
import { compileFx } from 'tensorfx/inductor'
import type { Backend } from 'tensorfx/compile'
import type { OpDef } from 'tensorfx/ops'
import { tenth } from '../helpers/rotation.ts'
import { builtInOps, hasPlainValues } from '../ops/builtInOps.ts'
import { allValueCases, plainsIn, replace, rounded, tensorOf } from '../ops/valueCases.ts'
import type { ValueCase } from '../ops/valueCases.ts'

const cases = await allValueCases()

const bitsOf = (result: unknown): readonly unknown[] =>
  [result].flat().map((one) => {
    const tensor = (one as Tensor).contiguous()
    return [tensor.dtype, tensor.shape, [...new Uint8Array(bytes(tensor))]]
  })

const bytes = (tensor: Tensor): ArrayBufferLike => {
  const array = tensor.toTypedArray()
  return array.buffer.slice(array.byteOffset, array.byteOffset + array.byteLength)
}

/** How many calls of a test were of one operator. */
let found = 0

function compareBits(op: OpDef, one: ValueCase, float: DType): void {
  const args = rounded(one.args, float)
  const tensors = (): readonly Tensor[] => plainsIn(args).map((plain) => tensorOf(plain, float, 'int32'))
  const call = (...given: Tensor[]): unknown => {
    let next = 0
    return op.fn(...args.map((arg) => replace(arg, () => given[next++])))
  }
  const said: boolean[] = []
  const backend: Backend = (gm, inputs) => {
    const code = compileFx(gm, inputs)
    said.push(code.isProgram?.() === true)
    return code
  }
  noGrad(() => {
    torch.manualSeed(29)
    const eager = call(...tensors())
    torch.manualSeed(29)
    const compiled = compile(call, { backend, dynamic: false })(...tensors())
    if (!said.includes(true)) return
    found++
    expect(bitsOf(compiled)).toEqual(bitsOf(eager))
  })
}

const calls = builtInOps()
  .filter(hasPlainValues)
  .flatMap((op) =>
    (cases.get(op.qualname) ?? []).flatMap((one, i) =>
      one.readsValues === true
        ? []
        : (['float32', ...(one.notInHalf === undefined ? (['float16'] as const) : [])] as const).map(
            (float) => [`${op.qualname} ${i + 1} ${float}`, op, one, float] as const,
          ),
    ),
  )

describe('a graph of one operator that says so', () => {
  it.each(tenth(calls, ([name]) => name))('%s: has the bits of the eager kernel', (_, op, one, float) => compareBits(op, one, float))

  it('are many of the cases', () => expect(found).toBeGreaterThan(calls.length / 50))

  it('has more than the smallest sizes', () => {
    for (const fn of [
      (x: Tensor) => torch.nn.functional.gelu(x),
      (x: Tensor) => x.exp(),
      (x: Tensor) => x.add(x, { alpha: 0.3 }),
      (x: Tensor) => x.t().tanh(),
    ])
      for (const size of [1, 7, 64, 131]) {
        const x = torch.randn([size, 33])
        expect(bitsOf(compile(fn)(x))).toEqual(bitsOf(fn(x)))
      }
  })
})
