// A failing graph as a script: in the debug folder, and as repro.mjs in the working directory.
import type { GraphModule } from '../../fx/index.ts'
import { describe } from '../common/describeError.ts'
import { fileStore, joinPath, workingDirectory } from '../files/fileStore.ts'
import { log } from '../common/log.ts'
import { checkpointPaths, writeRepro } from './reproScript.ts'
import type { ReproOptions } from './reproScript.ts'

/** Writes the state as a script, and a copy of it in the working directory as repro.mjs. Returns the copy's path. */
export function dumpCheckpoint(
  runDir: string,
  gm: GraphModule,
  inputs: readonly unknown[],
  options: Omit<ReproOptions, 'command'>,
  print: (line: string) => void = log.info,
): string {
  const store = fileStore()
  const { script, saveDir } = checkpointPaths(runDir, gm.graph.nodes.length)
  const run: ReproOptions = { ...options, command: 'run' }
  print(`Writing checkpoint with ${gm.graph.nodes.length} nodes to ${script}`)
  writeRepro(store, script, saveDir, gm, inputs, run)
  const copy = joinPath(workingDirectory(), 'repro.mjs')
  print(`Copying repro file for convenience to ${copy}`)
  try {
    writeRepro(store, copy, saveDir, gm, inputs, run)
    return copy
  } catch (error) {
    log.warning(`No write permissions for ${copy} (${describe(error)})`)
    return script
  }
}
