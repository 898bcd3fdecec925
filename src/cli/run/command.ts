// `tensorfx run`: a program as several ranks.
import { existsSync } from 'node:fs'
import { ArgumentError } from '../../errors/index.ts'
import { numberOf } from '../line.ts'
import type { Line, Output, Result } from '../line.ts'
import { findLauncher, hasKoffi } from './launcher.ts'
import type { Launcher } from './launcher.ts'
import { runOnce } from './world.ts'

/** How the ranks are started: with this launcher, or as threads if it is null. Throws ArgumentError for a backend that is not there. */
async function chooseLauncher(name: string | undefined): Promise<Launcher | null> {
  if (name === 'threads') return null
  const launcher = findLauncher()
  const missing = [
    ...(launcher === null ? ['mpirun is not there (install Open MPI or MPICH, or set TENSORFX_MPIRUN to the launcher)'] : []),
    ...((await hasKoffi()) ? [] : ['the package koffi cannot be loaded (npm install koffi)']),
  ]
  if (missing.length === 0) return launcher
  if (name === undefined) return null
  throw new ArgumentError(`--backend mpi does not work here: ${missing.join('; ')}. --backend threads needs neither.`)
}

/** Runs `tensorfx run`. */
export async function runProgramAsRanks(line: Line, output: Output): Promise<Result> {
  const { operands, options } = line
  const size = numberOf(line, '-n')
  const restarts = numberOf(line, '--restarts') ?? 0
  const [file, ...words] = operands
  if (file === undefined) throw new ArgumentError('the program is missing: name its file.')
  if (size === undefined) throw new ArgumentError('-n is missing: the number of ranks.')
  if (!existsSync(file)) throw new ArgumentError(`there is no file ${file}.`)
  const launcher = await chooseLauncher(options.get('--backend'))
  for (let start = 0; ; start++) {
    const { code, isStopped } = await runOnce({ launcher, size, file, words, output, restarts: start })
    if (code === 0 || isStopped || start === restarts) return { text: '', code }
    output.note(`tensorfx run: ended with code ${code}; restart ${start + 1} of ${restarts}`)
  }
}
