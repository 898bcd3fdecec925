// The scripts that the debugger writes run by themselves, in a folder from which no package can be imported.
import { execFileSync } from 'node:child_process'
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { temporaryFolder } from '../helpers/folder.ts'
import { bundledUrl } from '../../scripts/bundled.mjs'
import { node } from './node.ts'

const work = temporaryFolder('tensorfx-repro-')

/** The one file of that name in the working folder or below. */
function script(name: string): string {
  const found = readdirSync(work, { recursive: true, encoding: 'utf8' }).filter((path) => basename(path) === name)
  expect(found).toHaveLength(1)
  return join(work, found[0] ?? '')
}

/** Runs a script as a user does; its output, and whether it failed. */
function run(path: string, ...args: readonly string[]): { readonly failed: boolean; readonly output: string } {
  try {
    return { failed: false, output: execFileSync(process.execPath, [path, ...args], { cwd: work, encoding: 'utf8', stdio: 'pipe' }) }
  } catch (error) {
    const { stdout, stderr } = error as { readonly stdout: string; readonly stderr: string }
    return { failed: true, output: stdout + stderr }
  }
}

describe('a failing compile in the environment TENSORFX_REPRO_AFTER=dynamo', () => {
  const program = `
    import { compile, torch } from '${bundledUrl('index.js')}'
    const f = compile((x) => torch.cos(torch.relu(torch.sin(x))), { backend: 'relu_compile_error_TESTING_ONLY' })
    try { f(torch.ones([4])) } catch (error) { console.log(error.name) }`

  it('leaves a script that fails in the same way, and passes with another backend', () => {
    expect(node(program, { cwd: work, env: { TENSORFX_REPRO_AFTER: 'dynamo', TENSORFX_REPRO_LEVEL: '1' } })).toBe('BackendCompilerFailed')
    const repro = script('repro.mjs')
    const failure = run(repro)
    expect(failure.failed).toBe(true)
    expect(failure.output).toContain('relu')
    expect(run(repro, '--backend', 'eager')).toEqual({ failed: false, output: 'with eager: passes\nThe repro ran without an error.\n' })
    expect(run(repro, '--help').output).toContain('usage: repro.mjs [-h]')
    expect(run(repro, 'analyse').output).toContain("unknown argument 'analyse'")
  })

  it('leaves a launcher that shrinks the graph to the relu', () => {
    node(program, { cwd: work, env: { TENSORFX_REPRO_AFTER: 'dynamo', TENSORFX_REPRO_LEVEL: '2' } })
    expect(run(script('minifier_launcher.mjs')).failed).toBe(false)
    const minimal = script('repro.mjs')
    expect(readFileSync(minimal, 'utf8').match(/torch\.(sin|cos|relu)\(/g)).toEqual(['torch.relu('])
    expect(run(minimal).failed).toBe(true)
  })
})

describe('a failing compile with an operator of the program', () => {
  const index = bundledUrl('index.js')
  const operators = join(work, 'operators.mjs')
  const program = `
    import { compile, torch } from '${index}'
    import { half } from '${pathToFileURL(operators).href}'
    const f = compile((x) => torch.cos(torch.relu(half(torch.sin(x)))), { backend: 'relu_compile_error_TESTING_ONLY' })
    try { f(torch.ones([4])) } catch (error) { console.log(error.name) }`

  it('leaves scripts that import the module of the operator, and child processes that do', () => {
    writeFileSync(
      operators,
      `import { torch } from '${index}'
       export const half = torch.library.customOp('repro::half', {
         schema: '(Tensor x) -> Tensor',
         forward: (x) => x.mul(0.5),
         fake: (x) => torch.emptyLike(x),
         module: import.meta.url,
       })`,
    )
    expect(node(program, { cwd: work, env: { TENSORFX_REPRO_AFTER: 'dynamo', TENSORFX_REPRO_LEVEL: '1' } })).toBe('BackendCompilerFailed')
    const repro = script('repro.mjs')
    expect(readFileSync(repro, 'utf8')).toContain('torch.ops.repro.half(')
    expect(run(repro, '--backend', 'eager')).toEqual({ failed: false, output: 'with eager: passes\nThe repro ran without an error.\n' })
    const minified = run(repro, 'minify', '--isolate')
    expect(minified.output).not.toContain('judged in this process')
    expect(minified.failed).toBe(false)
    expect(readFileSync(repro, 'utf8').match(/torch\.(sin|cos|relu|ops\.repro\.half)\(/g)).toEqual(['torch.relu('])
  })
})
