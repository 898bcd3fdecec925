// A backend that fails to compile, and one that computes wrong numbers, under the debugger: it writes scripts. Then one of the graphs is shrunk to a repro, and the two
// models are compared, forward and backward.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { torch } from 'tensorfx'
import { compile, config, registerBackend } from 'tensorfx/compile'
import { minifyBackendFailure, sameTwoModels } from 'tensorfx/debug'
import { symbolicTrace } from 'tensorfx/fx'

const folder = mkdtempSync(join(tmpdir(), 'walk-'))
Object.assign(config, { debugDirRoot: folder, reproAfter: 'dynamo' })

const fails = (gm) => {
  if ([...gm.graph.nodes].some(({ target }) => target === torch.relu)) throw new Error('no rule for relu')
  return gm
}
const wrong =
  (gm) =>
  (...inputs) =>
    gm(...inputs).map((output) => output.add(1))
registerBackend('fails', fails)
registerBackend('wrong', wrong)

const f = (x) => torch.relu(x.sin()).mul(2)
const x = torch.randn([4])
const failing = (level, backend) => {
  config.reproLevel = level
  try {
    compile(f, { backend })(x)
  } catch (error) {
    if (!/no rule for relu|accuracy/i.test(error.message)) throw error
    return
  }
  throw new Error(`the backend '${backend}' was expected to fail`)
}
try {
  failing(2, 'fails')
  failing(4, 'wrong')
  await minifyBackendFailure(symbolicTrace(f), [x], { backend: 'fails', isolate: false })
  if (
    sameTwoModels(
      symbolicTrace(f),
      symbolicTrace((y) => f(y).add(1)),
      [x.requiresGrad_()],
    )
  )
    throw new Error('two different models were expected to differ')
} finally {
  rmSync(folder, { recursive: true, force: true })
}
