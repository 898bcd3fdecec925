// Judges the debugger on a planted fault: a program runs under it, its launcher minifies, and the repro is looked at and run. How scripts are run is up to `runner`: in fresh
// processes (processRunner below), or in this one (the tests).
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { filesOf, inlined } from './files.mjs'
import { copyElsewhere, distUrl, filesNamed, folderWith, runScript, slowness } from './processes.mjs'

/** How the program ends for each kind. */
const ENDS = { exit: 'exit 7', kill: 'signal SIGKILL', hang: 'hang', memory: 'signal SIGABRT' }

/** What the output of a failing process holds. */
const textOf = ({ kind }) => (kind === 'throws' ? 'suspect: no kernel for' : kind in ENDS ? '' : 'AccuracyError')

/** What the repro of a death prints: the graph runs in a process of its own, whose end it tells. */
const REPORTS = {
  exit: /: the isolated process died: exit code 7;/,
  kill: /: the isolated process died: signal SIGKILL;/,
  hang: /: no answer/,
  memory: /: the isolated process died: (?:signal SIGABRT|exit code 134);/,
}

/** How often something is tried that fails in half of its runs. */
const TRIES = 8

/** The operators that a script's graph calls, without those that only take a result out of several. */
export function operatorsIn(text) {
  const [forward = ''] = text.split('function loadArgs')
  return [...forward.matchAll(/(?:= |^ +)torch\.(?:\w+\.)*(\w+)\(/gm)].map((match) => match[1])
}

/**
 * What is wrong with the debugger's answer to a drawn fault at a level, as a text that begins with what kind of a failure it is ('missed', 'no repro', 'not minimal', …); null if nothing is.
 * `runner`: { program(), launcher(), script(path, words), repro(), given(path), elsewhere(path) }.
 */
export async function judgeFault({ fault }, level, runner) {
  const programFails = (ended) => ended.how === (ENDS[fault.kind] ?? 'exit 1') && ended.output.includes(textOf(fault))
  const reproFails = (ended) =>
    fault.kind in REPORTS
      ? ended.how === 'exit 1' && REPORTS[fault.kind].test(ended.output) && !ended.output.includes('in another way')
      : programFails(ended)
  const often = async (attempt, fails) => {
    for (let tries = fault.rate === undefined ? 1 : TRIES; ; tries--) {
      // oxlint-disable-next-line no-await-in-loop -- until it fails
      const ended = await attempt()
      if (tries === 1 || fails(ended)) return ended
    }
  }
  const short = fault.kind === 'hang' ? ['--timeout-ms', '3000'] : []
  const first = await often(() => runner.program(), programFails)
  if (!programFails(first)) return `missed: the program ended with ${first.how}${lastLine(first)}`
  if (level > 1) {
    const launcher = runner.launcher()
    if (launcher === null) return `no launcher${lastLine(first)}`
    const launched = await runner.script(launcher, short)
    if (launched.how !== 'exit 0') return `no repro: the launcher ended with ${launched.how}${lastLine(launched)}`
  }
  const repro = runner.repro()
  if (repro === null) return `no repro${lastLine(first)}`
  const operators = operatorsIn(repro.text)
  // The backward of the repro's graph belongs to it.
  const isHeld = operators.includes(fault.name) || (await runner.given(repro.path)).includes(fault.operator)
  if (!isHeld) return `wrong operator: ${operators.join(', ')} instead of ${fault.name}`
  const most = (fault.producer === undefined ? 1 : 2) + 1
  if (level > 1 && operators.length > most) return `not minimal: ${operators.length} operators (${operators.join(', ')})`
  const copy = runner.elsewhere(repro.path)
  for (const [where, path] of [
    ['where it was written', repro.path],
    ['elsewhere', copy],
  ]) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    const suspect = await often(() => runner.script(path, short), reproFails)
    if (!reproFails(suspect)) return `the repro ${where} does not fail: ${suspect.how}${lastLine(suspect)}`
  }
  const right = await runner.script(copy, ['--backend', 'eager'])
  return right.how === 'exit 0' ? null : `the repro does not pass on eager: ${right.how}${lastLine(right)}`
}

const lastLine = ({ output }) => {
  const lines = output.trim().split('\n')
  const error = lines.findLast((line) => /Error\b|error:/.test(line)) ?? lines.at(-1) ?? ''
  return `: ${error.trim().slice(0, 200)}`
}

/** How long a program may take that is to hang, on a machine that does nothing else. */
const HANG_MS = 8000

/** The module of a backend that is right and prints the operators of the graphs that it gets. */
const GIVEN = `
import { registerBackend } from '${distUrl('entries/compile.js')}'
${inlined('given.mjs')}
registerBackend('given', givenBackend((operator) => console.log('given: ' + operator)), { module: import.meta.url })
`

/** Runs a drawn fault in fresh processes; the repro is copied into another folder. `log` gets what the processes print; `close` removes the folders. */
export function processRunner(drawn, place, level, log = () => {}) {
  const { fault } = drawn
  const folders = [folderWith({ ...filesOf(distUrl, drawn), 'given.mjs': GIVEN })]
  const [folder] = folders
  // A small heap is soon exhausted.
  const node = fault.kind === 'memory' ? ['--max-old-space-size=96'] : []
  const run = async (path, words, { cwd = dirname(path), ...options } = {}) => {
    const ended = await runScript(cwd, path, words, { node, ms: 240_000, ...options })
    log(`$ node ${path} ${words.join(' ')}: ${ended.how} after ${ended.ms.toFixed(0)} ms\n${ended.output}`)
    return ended
  }
  const ms = fault.kind === 'hang' ? HANG_MS * slowness() : 240_000
  return {
    folders,
    program: () => run(`${folder}/program.mjs`, [], { ms, env: { TENSORFX_REPRO_AFTER: place, TENSORFX_REPRO_LEVEL: String(level) } }),
    launcher: () => filesNamed(folder, 'minifier_launcher.mjs').at(-1) ?? null,
    // The launcher runs where the program ran, and outlasts the candidates that hang.
    script: (path, words) => (path.endsWith('minifier_launcher.mjs') ? run(path, words, { cwd: folder }) : run(path, words)),
    repro() {
      const path = filesNamed(folder, 'repro.mjs').at(-1)
      return path === undefined ? null : { path, text: readFileSync(path, 'utf8') }
    },
    async given(path) {
      // A repro of a death would run the graph in a process of its own.
      const here = join(dirname(path), 'given_repro.mjs')
      writeFileSync(here, readFileSync(path, 'utf8').replace(/^ *death: .*\n/m, ''))
      const { output } = await run(here, ['--backend', `${folder}/given.mjs#given`])
      return [...output.matchAll(/^given: (.*)$/gm)].map((match) => match[1])
    },
    elsewhere(path) {
      const copy = copyElsewhere(path)
      folders.push(dirname(copy))
      return copy
    },
    close: () => folders.forEach((path) => rmSync(path, { recursive: true, force: true })),
  }
}
