// Every operator on the GPU against the references of test/ops/values. What has no shader is computed by WebAssembly.
import { beforeAll, test } from 'vitest'
import type { OpDef } from 'tensorfx/ops'
import { init } from 'tensorfx/webgpu'
import { bundledUrl } from '../../../scripts/bundled.mjs'
import { threadEntry } from '../../../src/gpu/thread.ts'
import { builtInOps, hasPlainValues } from '../../ops/builtInOps.ts'
import { checkCompiled } from '../../ops/checkValues.ts'
import { allValueCases } from '../../ops/valueCases.ts'
import { third } from '../../helpers/rotation.ts'

threadEntry.url = bundledUrl('entries/webgpuThread.js')

const cases = await allValueCases()

beforeAll(async () => init({ fallback: 'wasm', limits: { kernels: 256 } }))

const ops = builtInOps()
  .filter(hasPlainValues)
  .map((op): readonly [string, OpDef] => [op.qualname, op])

test.each(third(ops))('%s on the GPU gives what it should', (qualname, op) => {
  for (const one of cases.get(qualname) ?? []) checkCompiled(op, one, 'float32', 'webgpu')
})
