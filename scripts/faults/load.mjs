// The debugger on a machine that is busy: slow imports, slow candidates, real hangs, and a folder that cannot be made. Each must end with the right verdict, in bounded time.
import { spawn } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { filesOf } from './files.mjs'
import { operatorsIn } from './judge.mjs'
import { distUrl, filesNamed, folderWith, runScript, slowness } from './processes.mjs'

/** Runs something while `count` processes keep the processors busy. They end by themselves after a quarter of an hour if this process dies. */
export async function underLoad(count, run) {
  const spin = 'const end = Date.now() + 900_000; while (Date.now() < end);'
  const busy = Array.from({ length: count }, () => spawn(process.execPath, ['-e', spin], { stdio: 'ignore' }))
  try {
    return await run()
  } finally {
    for (const child of busy) child.kill('SIGKILL')
  }
}

const program = { model: 'mlp', mode: 'eval', dtype: 'float32', seed: 1 }
const SLOW_IMPORT = 'await new Promise((resolve) => setTimeout(resolve, 4000))'
/** Every graph takes a while to compile. */
const SLOW_CANDIDATES = 'globalThis.tensorfxSlow = () => { const end = process.cpuUsage().user + 250_000; while (process.cpuUsage().user < end); }'
/** After so long a candidate hangs. */
const SHORT = ['--timeout-ms', '3000']
const tanh = { operator: 'torch.tanh', name: 'tanh', dtype: 'float32' }

/** How many milliseconds a process gets before this test calls it endless. On two processors, four busy processes make each two to three times as slow. */
const boundMs = () => 300_000 * Math.max(1, slowness() / 3)

/** A fault that is minified: its launcher must come to tanh, in a repro that ends as `how`. */
const minified =
  (fault, { level, how, before = '', slow = false, words = [] }) =>
  async () => {
    const files = filesOf(distUrl, { program, fault }, before)
    if (slow) files['suspect.mjs'] = files['suspect.mjs'].replace('return (gm) => {', 'return (gm) => {\n    globalThis.tensorfxSlow()')
    const folder = folderWith(files)
    try {
      const hangs = fault.kind === 'hang'
      const env = { TENSORFX_REPRO_AFTER: 'dynamo', TENSORFX_REPRO_LEVEL: String(level) }
      const first = await runScript(folder, 'program.mjs', [], { env, ms: hangs ? boundMs() / 10 : boundMs() })
      if (first.how !== how) return `the program ended with ${first.how}`
      const launched = await runScript(folder, filesNamed(folder, 'minifier_launcher.mjs').at(-1) ?? 'no launcher', words, { ms: boundMs() })
      if (launched.how !== 'exit 0') return `the launcher ended with ${launched.how}\n${launched.output}`
      const repro = filesNamed(folder, 'repro.mjs').at(-1)
      if (repro === undefined) return 'there is no repro'
      const operators = operatorsIn(readFileSync(repro, 'utf8'))
      if (operators.join() !== 'tanh') return `the repro has ${operators.join(', ')}`
      // The repro of a hang runs the graph in a process of its own, and tells that it does not end.
      const again = await runScript(folder, repro, words, { ms: boundMs() })
      if (again.how !== 'exit 1' || (hangs && !again.output.includes(': no answer'))) return `the repro ended with ${again.how}\n${again.output}`
      const right = await runScript(folder, repro, ['--backend', 'eager'], { ms: boundMs() })
      return right.how === 'exit 0' ? null : `the repro on eager ended with ${right.how}\n${right.output}`
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }

/** An error while the folder of the debugger cannot be made: the program's own error is seen, and a warning. */
const withoutFolder = (root) => async () => {
  const files = filesOf(distUrl, { program, fault: { ...tanh, kind: 'throws' } })
  files['program.mjs'] =
    `import { config } from '${distUrl('entries/compile.js')}'\nconfig.debugDirRoot = ${JSON.stringify(root)}\n${files['program.mjs']}`
  const folder = folderWith({ ...files, file: 'not a folder' })
  try {
    const env = { TENSORFX_REPRO_AFTER: 'dynamo', TENSORFX_REPRO_LEVEL: '2' }
    const ended = await runScript(folder, 'program.mjs', [], { env, ms: boundMs() })
    if (ended.how !== 'exit 1' || !ended.output.includes('suspect: no kernel for torch.tanh'))
      return `the program ended with ${ended.how}\n${ended.output}`
    return ended.output.includes('could not be written') ? null : `there is no warning\n${ended.output}`
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The cases by name: functions that return what went wrong, or null. */
export const LOADED = {
  'a module that takes 4 s to import, and an error': minified({ ...tanh, kind: 'throws' }, { level: 2, how: 'exit 1', before: SLOW_IMPORT }),
  'a module that takes 4 s to import, and a hang': minified({ ...tanh, kind: 'hang' }, { level: 3, how: 'hang', before: SLOW_IMPORT, words: SHORT }),
  'a module that takes 4 s to import, and wrong numbers': minified({ ...tanh, kind: 'factor' }, { level: 4, how: 'exit 1', before: SLOW_IMPORT }),
  'slow candidates, and an error': minified({ ...tanh, kind: 'throws' }, { level: 2, how: 'exit 1', before: SLOW_CANDIDATES, slow: true }),
  'slow candidates, and a hang': minified({ ...tanh, kind: 'hang' }, { level: 3, how: 'hang', before: SLOW_CANDIDATES, slow: true, words: SHORT }),
  'a hang': minified({ ...tanh, kind: 'hang' }, { level: 3, how: 'hang' }),
  'a folder below a file': withoutFolder('file/below'),
  'a folder below /dev/null': withoutFolder('/dev/null/below/it'),
  'a folder in /proc': withoutFolder('/proc/tensorfx/debug'),
}
