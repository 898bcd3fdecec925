// What TypeScript says about programs that use the built package, under every strict option, the libraries checked.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { removeFolder } from '../helpers/folder.ts'
import { STRICT } from '../../scripts/docs/examples.mjs'
import { root } from './node.ts'

/** The compiler's errors about programs, by the names of their files; `types` are packages of types to include, `options` compiler options that differ. Lines that begin with a space belong to the error before them. */
export function errorsOf(programs: Readonly<Record<string, string>>, types: readonly string[] = [], options: object = {}): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'tensorfx-types-'))
  const link = (name: string, target: string): void => {
    mkdirSync(dirname(join(folder, 'node_modules', name)), { recursive: true })
    symlinkSync(join(root, target), join(folder, 'node_modules', name))
  }
  try {
    link('tensorfx', '.')
    for (const name of types) link(`@types/${name}`, `node_modules/@types/${name}`)
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: { ...STRICT, types, ...options }, files: Object.keys(programs) }))
    for (const [name, code] of Object.entries(programs)) writeFileSync(join(folder, name), code)
    execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc')], { cwd: folder, encoding: 'utf8', stdio: 'pipe' })
    return []
  } catch (error) {
    const { stdout } = error as { readonly stdout?: string }
    if (stdout === undefined) throw error
    return stdout.trim().split('\n')
  } finally {
    removeFolder(folder)
  }
}
