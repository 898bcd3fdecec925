// Scripts in folders, and with files, whose names mean something elsewhere: to shells, to JavaScript, in addresses, on Windows. What is in a name is never run.
import { cpSync, existsSync, mkdirSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { removeFolder } from '../helpers/folder.ts'
import { root } from '../built/node.ts'
import { turn } from '../helpers/rotation.ts'
import { distUrl, folderWith, launcherIn, readRepro, runScript } from './processes.ts'

const work = folderWith()
afterAll(() => removeFolder(work))

const files = {
  "it's mine.mjs": `
    import { registerBackend } from '${distUrl('entries/compile.js')}'
    export function mine(gm) {
      if (gm.code.includes('relu')) throw new RangeError('no relu here')
      return gm
    }
    registerBackend("it's \`mine\`\\n\${1}", mine, { module: import.meta.url })`,
  'program.mjs': `
    import { compile, torch } from '${distUrl('index.js')}'
    import { config } from '${distUrl('entries/compile.js')}'
    import "./it's mine.mjs"
    if (process.argv[2] !== undefined) config.debugDirRoot = process.argv[2]
    compile((x) => torch.cos(torch.relu(torch.sin(x))), { backend: "it's \`mine\`\\n\${1}" })(torch.randn([3]))`,
}

/** No file of a name was run: it would have left this one. */
const expectNothingRun = (folder: string): void => {
  const left = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => /(^|\/)hacked$/.test(name))
  expect([left, existsSync(join(tmpdir(), 'hacked')), existsSync('hacked')]).toEqual([[], false, false])
}

// Folders in folders, so that few runs meet all of them.
const NAMES = [
  `it's a "folder"; $(touch hacked) \`touch hacked\` & touch hacked/100%25 #1 what? a+b=c C:`,
  "línea\nzwei \u2028 行'); process.exit(0); ('/src/dist/src",
]

describe('a folder with the name', { timeout: 240_000 }, () => {
  it.concurrent.each(NAMES)('%j holds scripts that work', async (name) => {
    const folder = join(work, name)
    mkdirSync(folder, { recursive: true })
    cpSync(folderWith(files), folder, { recursive: true })
    const dumps = `dumps ${name.split('/')[0] ?? ''}`
    const repro = join(folder, 'repro.mjs')
    // Level 1: a script in the working directory, whose inputs are elsewhere.
    await runScript(folder, 'program.mjs', [dumps], { env: { TENSORFX_REPRO_AFTER: 'dynamo', TENSORFX_REPRO_LEVEL: '1' } })
    const whole = await runScript('/', repro)
    expect([whole.how, whole.output.includes('RangeError: no relu here'), whole.output.includes('random data')]).toEqual(['exit 1', true, false])
    removeFolder(join(folder, dumps))
    const first = await runScript(folder, 'program.mjs', [dumps], { env: { TENSORFX_REPRO_AFTER: 'dynamo', TENSORFX_REPRO_LEVEL: '2' } })
    expect(first.output).toContain('RangeError: no relu here')
    const launcher = launcherIn(folder)
    expect(launcher, first.output).not.toBeNull()
    const launched = await runScript(folder, launcher ?? '')
    expect(launched.how, launched.output).toBe('exit 0')
    // The inputs were found.
    expect(launched.output).not.toContain('random data')
    expect(readRepro(repro)).toEqual({ operators: ['relu'], elements: 1, nodes: 3 })
    const again = await runScript('/', repro)
    expect([again.how, again.output.includes('RangeError: no relu here'), again.output.includes('random data')]).toEqual(['exit 1', true, false])
    // A backend on the command line, by a path from the working directory.
    const named = await runScript(folder, repro, ['--backend', `./it's mine.mjs#mine`])
    expect([named.how, named.output.includes('RangeError: no relu here')]).toEqual(['exit 1', true])
    expectNothingRun(folder)
  })
})

it('the package may be in a folder below one that is called src', async () => {
  const folder = join(work, 'src/app')
  mkdirSync(join(folder, 'node_modules/tensorfx'), { recursive: true })
  cpSync(join(root, 'dist'), join(folder, 'node_modules/tensorfx/dist'), { recursive: true })
  cpSync(join(root, 'package.json'), join(folder, 'node_modules/tensorfx/package.json'))
  const program = `
    import { compile, torch } from 'tensorfx'
    import { config } from 'tensorfx/compile'
    config.debugDirRoot = process.argv[2] ?? null
    compile((x) => torch.cos(torch.relu(x)), { backend: 'relu_compile_error_TESTING_ONLY' })(torch.randn([3]))`
  cpSync(folderWith({ 'program.mjs': program }), folder, { recursive: true })
  // In the project, where scripts find the package by its name, or outside of it, where they do not.
  for (const words of turn([[], [join(work, 'elsewhere')]])) {
    const env = { TENSORFX_REPRO_AFTER: 'dynamo', TENSORFX_REPRO_LEVEL: '2' }
    await runScript(folder, 'program.mjs', words, { env })
    const launched = await runScript(folder, launcherIn(words[0] ?? join(folder, 'tensorfx_compile_debug')) ?? '')
    expect(launched.how, launched.output).toBe('exit 0')
  }
})
