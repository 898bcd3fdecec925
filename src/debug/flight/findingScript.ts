// Writes the script that shows a finding again: a step that is replayed operator by operator, or the repro of a compiled graph.
import { messageOf } from '../../errors/index.ts'
import { backendImports, isImportable } from '../../dynamo/index.ts'
import { fileStore, joinPath } from '../files/fileStore.ts'
import { writeRepro } from '../script/reproScript.ts'
import type { Evidence } from './analysis.ts'
import type { BadRun } from './compiledCode.ts'
import { recordingOf, replayed, writeReplay } from './replay.ts'
import type { FlightReport } from './report.ts'

/** The file of a script and its text, null if there is none; notes say why, or what it does not show. */
type WrittenScript = Pick<FlightReport, 'file' | 'script' | 'notes'>

const noScript = (why: string): WrittenScript => ({ file: null, script: null, notes: [`No script was written: ${why}`] })

/** Writes the script into a folder of its own below `dir`. */
export function writeScript(dir: string, evidence: Evidence, report: FlightReport): WrittenScript {
  const folder = joinPath(dir, `step_${report.step}`)
  const file = joinPath(folder, 'replay.mjs')
  try {
    switch (evidence.kind) {
      case 'compiled graph':
        return { file, script: writeCompiledRepro(file, folder, evidence.run, report), notes: [] }
      case 'node':
        return writeStep(file, folder, evidence, report)
      case 'none':
        return noScript('there is no recorded operator to replay.')
    }
  } catch (error) {
    return noScript(messageOf(error))
  }
}

function writeCompiledRepro(file: string, folder: string, { gm, inputs, label }: BadRun, report: FlightReport): string {
  return writeRepro(fileStore(), file, folder, gm, inputs, {
    after: 'aot',
    command: 'run',
    spec: { backend: label, accuracy: 'accuracy', checkStr: null, signature: null, onlyFwd: true },
    imports: backendImports(label),
    notes: String(report).split('\n'),
    backendProblem: isImportable(label) ? null : `'${label}' is a function of the program that wrote this script`,
  })
}

function writeStep(file: string, folder: string, { watch, node }: Extract<Evidence, { kind: 'node' }>, report: FlightReport): WrittenScript {
  const { origin, trigger } = report
  const isJump = origin.kind === 'jump'
  const gradFn = origin.kind === 'operator' ? origin.gradFn : null
  const recording = recordingOf(watch, node, node)
  const script = writeReplay(fileStore(), file, folder, recording, String(report), { gradFn, loss: isJump ? trigger.value : null })
  const shown = replayed(
    recording.gm,
    recording.inputs.map(({ value }) => value),
    new Set(recording.inputs.flatMap((input) => (input.isIntended ? [input.node.name] : []))),
    gradFn !== null,
  )
  const notes = shown === null && !isJump ? ['The script does not show the bad element: it depends on memory that several tensors share.'] : []
  return { file, script, notes }
}
