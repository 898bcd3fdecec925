// d. A backend that computes relu wrongly: caught, shrunk, and written as a program of its own.
import { spawnSync } from 'node:child_process'
import { compile, torch } from 'tensorfx'
import { withConfig } from 'tensorfx/compile'
import { AccuracyError, minifyBackendFailure, setLogSink } from 'tensorfx/debug'
import { heading, printBlock } from './terminal.mjs'

const BACKEND = 'relu_accuracy_error_TESTING_ONLY'

export async function debug(fused, data, directory) {
  heading('d. The same model on a backend that is wrong on relu')
  const images = data.test[0].narrow(0, 0, 8).contiguous()
  let captured = null
  const messages = []
  const sink = setLogSink((_level, message) => messages.push(message))
  try {
    withConfig({ reproAfter: 'dynamo', reproLevel: 4, debugDirRoot: directory }, () => {
      const compiled = compile(fused, {
        backend: BACKEND,
        onGraph: (gm, inputs) => {
          captured = { gm: gm.deepCopy(), inputs: [...inputs] }
        },
      })
      torch.noGrad(() => compiled(images))
    })
    throw new Error('the accuracy check did not catch the wrong backend')
  } catch (error) {
    if (!(error instanceof AccuracyError)) throw error
    console.log(`  caught: ${error.name}: ${error.message.split('\n')[0]}`)
  } finally {
    setLogSink(sink)
  }
  for (const message of messages.filter((m) => m.startsWith('RMSE')).slice(0, 1)) console.log(`  ${message}`)
  const quiet = setLogSink(() => {})
  const start = performance.now()
  const result = await minifyBackendFailure(captured.gm, captured.inputs, {
    backend: BACKEND,
    accuracy: 'accuracy',
    onlyFwd: true,
    runDir: directory,
    print: () => {},
  })
  setLogSink(quiet)
  const seconds = (performance.now() - start) / 1000
  console.log(
    `  the minifier: ${result.steps[0].nodes} nodes -> ${result.gm.graph.nodes.length} in ${result.queries} queries, ${seconds.toFixed(2)} s, judged in ${result.processes} child process(es)`,
  )
  for (const step of result.steps)
    console.log(
      `    ${String(step.nodes).padStart(3)} nodes, ${step.inputs} inputs  ${step.strategy}${step.granularity > 0 ? ` (G: ${step.granularity})` : ''}`,
    )
  console.log('\n  The minimal graph:\n')
  printBlock(String(result.gm.graph))
  const inner = [...result.gm.graph.nodes].filter((n) => n.op !== 'placeholder' && n.op !== 'output').length
  if (inner > 3) throw new Error(`the minimal graph has ${inner} operators, expected at most 3`)
  console.log(`\n  The written repro, in a fresh process: node ${result.path.split('/').pop()}`)
  const run = spawnSync(process.execPath, [result.path, 'run'], { encoding: 'utf8' })
  const failed = run.status !== 0 && run.stderr.includes('AccuracyError')
  printBlock(
    run.stderr
      .split('\n')
      .filter((l) => /RMSE|AccuracyError:/.test(l))
      .join('\n'),
  )
  if (!failed) throw new Error(`the repro did not fail as it should (exit ${run.status}):\n${run.stderr}`)
  console.log(`  it exits with ${run.status} and AccuracyError, as it should.`)
  return { steps: result.steps, minimal: result.gm, queries: result.queries }
}
