// Faults planted in the text of shaders: compareBackends names the node that is wrong, and the minifier leaves little more than it. Results are awaited, so that the same runs in a page.
import { describe, expect, test } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { compareBackends } from 'tensorfx/debug'
import { symbolicTrace } from 'tensorfx/fx'
import type { GraphModule } from 'tensorfx/fx'
import { init } from 'tensorfx/webgpu'
import { FAULTS, drawn, inMain, planted, swap } from './faultList.ts'

describe('a fault in a shader', () => {
  test.each(FAULTS.map((planting) => [planting.fault, planting] as const))(
    '%s is named, and minified',
    async (fault, { edit, program, inputs, nodes, limits }) => {
      await init({ fallback: 'wasm', thread: false, ...(limits === undefined ? {} : { limits }) })
      const count = planted(fault, edit)
      const gm: GraphModule = symbolicTrace(program)
      torch.manualSeed(1)
      const result = await compareBackends(gm, inputs(), { backends: ['eager', 'webgpu', fault] })
      expect(count.changed, 'the fault is in no shader').toBeGreaterThan(0)
      expect([result.statuses.get('eager'), result.statuses.get('webgpu')]).toEqual(['right', 'right'])
      expect(result.statuses.get(fault)).toBe('wrong')
      const [first] = result.culprits.get(fault)?.nodes ?? []
      expect(nodes).toContain(first?.name)
      const small = await result.minify(fault)
      const calls = [...small.gm.graph.nodes].filter(({ op }) => op.startsWith('call_'))
      expect(calls.length).toBeLessThanOrEqual(2)
    },
  )
})

test('a shader that does not compile is a failure with its kernel, node and line, in compareBackends too', async () => {
  await init({ fallback: 'wasm', thread: false })
  planted('no shader', inMain(swap('let thread =', 'let thread = nothing +')))
  const gm = symbolicTrace((x: Tensor) => torch.tanh(x.mul(2)))
  const result = await compareBackends(gm, [drawn(4)], { backends: ['eager', 'no shader'] })
  expect(result.statuses.get('no shader')).toBe('failed')
  const culprit = result.culprits.get('no shader')
  expect(String(Reflect.get(culprit ?? {}, 'thrown'))).toMatch(
    /DeviceError: WebGPU: the shader of kernel k0_mul \(of mul.*\) does not compile at line \d+: .*nothing/,
  )
})
