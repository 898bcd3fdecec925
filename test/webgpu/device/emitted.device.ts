// Parts of the loop IR that no operator's grid has yet, on the GPU next to the reference interpreter. This file runs in Node and in a page.
import { expect, test } from 'vitest'
import { DeviceLostError } from 'tensorfx/webgpu'
import { randomFrom } from '../../../scripts/fuzz/random.mjs'
import {
  at,
  call,
  cast,
  constant,
  declareArray,
  element,
  forLoop,
  iota,
  local,
  localArray,
  declare,
  assign,
  loopVar,
  read,
  setElement,
} from '../../../src/kernels/ir/loopIr.ts'
import type { Expr } from '../../../src/kernels/ir/loopIr.ts'
import { third } from '../../helpers/rotation.ts'
import { deviceHere, runStatements } from './harness.ts'

test.each(third(Array.from({ length: 12 }, (_, i) => i)))('local arrays hold what is set, drawn case %i', async (i) => {
  const { int } = randomFrom(33_900 + i)
  const dtype = (['float32', 'int32', 'int64'] as const)[i % 3] ?? 'int32'
  const shape = Array.from({ length: 1 + int(3) }, () => 1 + int(4))
  const tile = localArray('tile', dtype, shape)
  const loops = shape.map((size, d) => loopVar(`k${d}`, size))
  const again = shape.map((size, d) => loopVar(`r${d}`, size))
  const sum = local('sum', dtype)
  const numbers = loops.reduce<Expr>((value, loop) => call('add', call('mul', value, constant('int32', 7)), iota(loop)), constant('int32', int(5)))
  const nest = (over: typeof loops, body: Parameters<typeof forLoop>[2]): Parameters<typeof forLoop>[2] =>
    over.toReversed().reduce((inner, loop) => [forLoop(loop, 'serial', inner)], body)
  const indices = loops.map((loop) => at([loop, 1]))
  const reread = again.map((loop) => at([loop, 1]))
  const values = Array.from({ length: 9 }, () => int(100) - 50)
  const { device, oracle } = await runStatements([{ dtype, values }], (given) => ({
    body: [
      declareArray(tile, constant(dtype, 3)),
      ...nest(loops, [setElement(tile, indices, call('add', call('mul', element(tile, ...indices), given), cast(numbers, dtype)))]),
      declare(sum, constant(dtype, 0)),
      ...nest(again, [assign(sum, call('add', read(sum), element(tile, ...reread)))]),
    ],
    value: read(sum),
  }))
  expect(device).toEqual(oracle)
})

test('the loss of the GPU says why, and which kernels were running', async () => {
  const device = await deviceHere()
  const messageOf = (info: { reason: 'unknown' | 'destroyed'; message: string }, kernels: readonly string[]): string => {
    device.lost = info as GPUDeviceLostInfo
    device.lastKernels = kernels
    try {
      device.check()
      return ''
    } catch (error) {
      expect(error).toBeInstanceOf(DeviceLostError)
      return (error as Error).message
    } finally {
      device.lost = null
    }
  }
  expect(messageOf({ reason: 'unknown', message: 'it hung' }, ['k1', 'k2'])).toBe(
    'the GPU was lost (unknown reason: it hung). The last kernels were k1, k2. Repeat the call: it asks for the GPU again.',
  )
  expect(messageOf({ reason: 'destroyed', message: '' }, [])).toBe('the GPU was lost (destroyed). Repeat the call: it asks for the GPU again.')
  expect(() => device.check()).not.toThrow()
})
