// `tensorfx repro`: a repro as one file, and what is refused when it is read.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { gunzipSync, gzipSync } from 'node:zlib'
import { packTar, unpackTar } from 'modern-tar'
import { afterAll, describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { fileStore } from 'tensorfx/debug'
import { symbolicTrace } from 'tensorfx/fx'
import { removeFolder } from '../helpers/folder.ts'
import { isSafePath, packArchive, readArchive } from '../../src/cli/repro/archive.ts'
import type { Manifest } from '../../src/cli/repro/archive.ts'
import { runTensorfx } from '../../src/cli/commands.ts'
import { packageName } from '../../src/cli/repro/modules.ts'
import { pack } from '../../src/cli/repro/pack.ts'
import { readSource } from '../../src/cli/repro/sources.ts'
import { writeRepro } from '../../src/debug/script/reproScript.ts'
import { bundledCommand, bundledUrl } from '../../scripts/bundled.mjs'
// The command packs what is not in dist/, so programs import that.
import { distUrl } from '../../scripts/faults/processes.mjs'
import { folderWith } from '../debug/processes.ts'

const folders: string[] = []
const folderOf = (files: Readonly<Record<string, string>>): string => {
  const folder = folderWith(files)
  folders.push(folder)
  return folder
}
afterAll(() => folders.forEach((folder) => removeFolder(folder)))

const text = (bytes: Uint8Array | undefined): string => new TextDecoder().decode(bytes)
const bytes = (content: string): Uint8Array => new TextEncoder().encode(content)
const gm = symbolicTrace((x: Tensor) => [torch.relu(x)])

/** A script in a folder, with a backend in a module that imports others. */
function scriptIn(
  folder: string,
  { backend = null, x = torch.linspace(0, 1, 2000) }: { readonly backend?: string | null; readonly x?: Tensor } = {},
): string {
  const url = pathToFileURL(join(folder, 'my backends/mine.mjs')).href
  const path = join(folder, 'repro.mjs')
  writeRepro(fileStore(), path, join(folder, 'data'), gm, [x], {
    after: 'dynamo',
    command: 'run',
    spec: { backend: backend ?? `${url}#mine`, accuracy: 'none', checkStr: null, signature: 'RangeError||no relu', onlyFwd: true },
    imports: [url],
  })
  return path
}

const files = {
  'my backends/mine.mjs': `import { registerBackend } from '${distUrl('entries/compile.js')}'
    import fs from 'node:fs'
    import { word } from './lib/word.js'
    import 'some-package'
    const { op } = JSON.parse(fs.readFileSync(new URL('./lib/data.json', import.meta.url), 'utf8'))
    export const mine = (gm) => { if (gm.code.includes(op)) throw new RangeError(word + op); return gm }
    registerBackend('mine', mine, { module: import.meta.url })`,
  'my backends/lib/word.js': `export const word = 'no '`,
  'my backends/lib/data.json': '{ "op": "relu" }',
  'package.json': '{ "type": "module" }',
}

describe('pack', () => {
  it('puts the script, its storages and the modules of its backend into one file, without addresses of this machine', async () => {
    const folder = folderOf(files)
    const { archive, missing } = await pack(scriptIn(folder))
    const { manifest, files: packed } = await readArchive(archive)
    expect([...packed.keys()].filter((name) => !name.startsWith('storages/')).toSorted()).toEqual(
      ['modules/lib/data.json', 'modules/lib/package.json', 'modules/lib/word.js', 'modules/mine.mjs', 'repro.mjs'].toSorted(),
    )
    expect([...packed.keys()].filter((name) => /^storages\/[0-9a-f]{40}$/.test(name))).toHaveLength(1)
    expect(missing).toEqual([expect.stringMatching(/mine\.mjs imports 'some-package', which is a package or an address and is not inside$/)])
    expect(manifest).toMatchObject({
      script: 'repro.mjs',
      missing,
      needsBackend: false,
      written: { node: process.version, platform: `${process.platform}-${process.arch}` },
    })
    const script = text(packed.get('repro.mjs'))
    expect(script).toContain(`backend: new URL('./modules/mine.mjs#mine', import.meta.url).href,`)
    expect(script).toContain(`imports: [new URL('./modules/mine.mjs', import.meta.url).href],`)
    expect(script).toContain(`import './modules/mine.mjs'\n`)
    expect(script).toContain(`saveDir: new URL('./', import.meta.url),`)
    expect(script).toContain(`from 'tensorfx/debug'`)
    expect(text(packed.get('modules/mine.mjs'))).toContain(`from 'tensorfx/compile'`)
    for (const content of packed.values()) expect(text(content)).not.toContain(folder)
  })

  it('names what it cannot find, and refuses what is no repro', async () => {
    const folder = folderOf(files)
    const path = scriptIn(folder)
    removeFolder(join(folder, 'data'))
    await expect(pack(path)).rejects.toThrow(/^the script needs the storage [0-9a-f]{40}, but there is no file .*data\/storages\//)
    rmSync(join(folder, 'my backends/mine.mjs'))
    await expect(pack(path)).rejects.toThrow(/^the module .*mine\.mjs, which the script needs, cannot be read\./)
    await expect(pack(join(folder, 'package.json'))).rejects.toThrow('is no repro script')
    await expect(pack(join(folder, 'absent.mjs'))).rejects.toThrow(/^there is no file .*absent\.mjs\.$/)
  })

  it('takes the backend along that a script has to be told of', async () => {
    const folder = folderOf({ ...files, 'other.mjs': 'export const theirs = (gm) => gm' })
    const path = join(folder, 'repro.mjs')
    const spec = { backend: 'a function', accuracy: 'none', checkStr: null, signature: null, onlyFwd: true } as const
    writeRepro(fileStore(), path, folder, gm, [torch.ones([1])], {
      after: 'aot',
      command: 'run',
      spec,
      imports: [],
      backendProblem: 'it is a function',
    })
    expect((await readArchive((await pack(path)).archive)).manifest.needsBackend).toBe(true)
    const { manifest, files: packed } = await readArchive((await pack(path, `${join(folder, 'other.mjs')}#theirs`)).archive)
    expect([manifest.needsBackend, manifest.modules]).toEqual([false, ['modules/other.mjs']])
    expect(text(packed.get('repro.mjs'))).toContain(`backend: new URL('./modules/other.mjs#theirs', import.meta.url).href,`)
    await expect(pack(path, 'theirs')).rejects.toThrow("--backend names a module and its export, ./file.mjs#export; got 'theirs'.")
  })
})

describe('the references of a source', () => {
  it('are its imports and the files that it names', () => {
    const found = readSource(`
      import a from './a.mjs'
      export * from './b.mjs'
      export { c } from './c.mjs'
      export const d = 1
      const e = await import('./e.mjs'), f = require('./f.cjs')
      const g = new URL('./g.json', import.meta.url), h = new URL('./h.json', base)
      const i = await import(name)`)
    expect(found.references.map(({ specifier, kind }) => `${specifier} ${kind}`).toSorted()).toEqual(
      ['./a.mjs import', './b.mjs import', './c.mjs import', './e.mjs import', './f.cjs import', './g.json file'].toSorted(),
    )
    expect(found.problems).toEqual(['it imports what is only known when it runs: import(name)'])
    expect(readSource('const x: number = 1').problems).toEqual(['its imports cannot be read: it is not JavaScript'])
    expect(readSource('with (a) { require("./x") }').references).toHaveLength(1)
  })

  it('to this package become its public names', () => {
    expect(['/p/dist/index.js', '/p/dist/entries/fx/passes.js', '/p/dist/kernels/index.js', '/p/other.js'].map(packageName)).toEqual([
      'tensorfx',
      'tensorfx/fx/passes',
      null,
      null,
    ])
  })
})

const about: Omit<Manifest, 'format' | 'version' | 'files'> = {
  script: 'repro.mjs',
  written: null,
  packed: { tensorfx: '1', node: undefined, v8: undefined, platform: undefined, execArgv: undefined, env: undefined },
  config: {},
  modules: [],
  missing: [],
  needsBackend: false,
}

describe('an archive of a stranger', () => {
  const good = (): Promise<Uint8Array> => packArchive(about, new Map([['repro.mjs', bytes('1')]]))
  interface Entry {
    readonly header: Parameters<typeof packTar>[0][number]['header']
    readonly body?: Uint8Array
  }
  const entry = (name: string, body: string, rest: object = {}): Entry => ({
    header: { name, size: body.length, type: 'file', ...rest },
    body: bytes(body),
  })
  /** A good archive with other entries. */
  const changed = async (change: (entries: Entry[]) => Entry[]): Promise<Uint8Array> => {
    const entries = await unpackTar(gunzipSync(await good()))
    const body = entries.map(({ header, data }): Entry => ({ header, ...(data === undefined ? {} : { body: data }) }))
    return gzipSync(await packTar(change(body)))
  }
  const manifestWith = (change: (manifest: Record<string, unknown>) => void): Promise<Uint8Array> =>
    changed(([first, ...rest]) => {
      const manifest = JSON.parse(text(first?.body)) as Record<string, unknown>
      change(manifest)
      return [entry('repro.json', JSON.stringify(manifest)), ...rest]
    })

  it('is read if it is what it says', async () => {
    const { manifest, files: read } = await readArchive(await good())
    expect([manifest.script, [...read.keys()], text(read.get('repro.mjs'))]).toEqual(['repro.mjs', ['repro.mjs'], '1'])
  })

  it.each(['../x.mjs', '/etc/x', 'a/../../x', 'a//b', './x', 'C:/x', 'a\\..\\x', 'a/', '', 'a\u0000b', 'a/b. ', 'nul\nl', 'x'.repeat(1001), 'a:b'])(
    'leads nowhere by the name %j',
    async (name) => {
      expect(isSafePath(name)).toBe(false)
      await expect(packArchive(about, new Map([[name, bytes('1')]]))).rejects.toThrow('cannot be unpacked everywhere')
    },
  )

  it('is refused for entries that lead out of the folder, that are not files, and that are there twice', async () => {
    for (const name of ['../x.mjs', '/etc/x', 'a/../../x'])
      await expect(readArchive(await changed((all) => [...all, entry(name, '2')]))).rejects.toThrow('leads out of its folder')
    for (const type of ['symlink', 'link', 'directory', 'fifo'] as const) {
      const header = { name: 'link', size: 0, type, linkname: '/etc/passwd' }
      await expect(readArchive(await changed((all) => [...all, { header }]))).rejects.toThrow(`the entry 'link' is a ${type}`)
    }
    await expect(readArchive(await changed((all) => [...all, entry('REPRO.mjs', '1')]))).rejects.toThrow("'REPRO.mjs' is there twice")
  })

  it('is refused if a file is missing, more, shorter or other than the description says', async () => {
    await expect(readArchive(await changed((all) => all.slice(0, 1)))).rejects.toThrow("the file 'repro.mjs' is missing")
    await expect(readArchive(await changed((all) => all.slice(1)))).rejects.toThrow('there is no repro.json in it')
    await expect(readArchive(await changed((all) => [...all, entry('more.mjs', '1')]))).rejects.toThrow("does not name the file 'more.mjs'")
    const replaced = (body: string) => (all: Entry[]) => [...all.slice(0, 1), entry('repro.mjs', body)]
    await expect(readArchive(await changed(replaced('12')))).rejects.toThrow("'repro.mjs' has 2 bytes, and should have 1")
    await expect(readArchive(await changed(replaced('2')))).rejects.toThrow("'repro.mjs' is not what it was when it was packed")
    await expect(readArchive(await manifestWith((m) => void (m['script'] = 'x.mjs')))).rejects.toThrow("the file 'x.mjs' is missing")
    await expect(readArchive(await manifestWith((m) => void (m['modules'] = ['y.mjs'])))).rejects.toThrow("the file 'y.mjs' is missing")
    await expect(readArchive(await manifestWith((m) => void (m['format'] = 'other')))).rejects.toThrow('repro run: format must be tensorfx.repro')
    await expect(readArchive(await manifestWith((m) => void (m['version'] = 2)))).rejects.toThrow('repro run: version must be 1')
    await expect(readArchive(await packArchive({ ...about, script: 'a.sh' }, new Map([['a.sh', bytes('1')]])))).rejects.toThrow('is no .mjs file')
  })

  it('is refused if it is damaged, or larger than its size allows', async () => {
    const whole = await good()
    for (const [damaged, why] of [
      [bytes('text'), 'it is no .tgz'],
      [whole.slice(0, 60), 'it is no .tgz, or it is damaged'],
      [gzipSync(gunzipSync(whole).slice(0, 700)), 'damaged|missing|no repro.json'],
      [gzipSync(gunzipSync(whole).fill(1, 0, 50)), 'its tar file is damaged'],
      [gzipSync(new Uint8Array(65 * 2 ** 20)), 'it unpacks to more than'],
      [await changed(([, ...rest]) => [entry('repro.json', '{'), ...rest]), 'repro.json is no JSON'],
    ] as const)
      await expect(readArchive(damaged)).rejects.toThrow(new RegExp(`^the archive cannot be read: .*(${why})`))
    // What compresses too well is stored, so that it can be read.
    const zeros = await packArchive(about, new Map([['repro.mjs', new Uint8Array(70 * 2 ** 20)]]))
    expect((await readArchive(zeros)).files.get('repro.mjs')?.length).toBe(70 * 2 ** 20)
  })
})

describe('the command', () => {
  const run = async (...words: string[]): Promise<{ readonly code: number; readonly output: string }> => {
    const lines: string[] = []
    const { text, code } = await runTensorfx(['repro', ...words], { print: (line) => void lines.push(line), note: () => {} })
    return { code, output: [...lines, text].join('\n') }
  }

  it('names what is wrong, with exit code 2', async () => {
    expect(await run()).toMatchObject({ code: 2, output: expect.stringMatching(/^usage: tensorfx repro pack/) as string })
    expect((await run('--help')).code).toBe(0)
    for (const [words, message] of [
      [['packs'], "unknown command 'packs'. Did you mean 'pack'?"],
      [['xyz'], "unknown command 'xyz'.\nusage"],
      [['pack'], 'pack takes one script, got none.'],
      [['pack', 'a.mjs', 'b.mjs'], 'pack takes one script, got a.mjs b.mjs.'],
      [['pack', 'a.mjs', '--out'], '--out needs a value.'],
      [['run'], 'run takes a file.'],
      [['run', '/absent.tgz'], 'the file /absent.tgz cannot be read: ENOENT'],
    ] as const)
      expect(await run(...words)).toMatchObject({ code: 2, output: expect.stringContaining(`tensorfx repro: ${message}`) as string })
  })

  it('writes no file over another', async () => {
    const folder = folderOf({ 'full/there.txt': '' })
    const archive = join(folder, 'a.tgz')
    writeFileSync(archive, await packArchive(about, new Map([['repro.mjs', bytes('1')]])))
    expect((await run('run', archive, '--dir', join(folder, 'full'))).output).toContain('is not empty; name a new one with --dir')
    expect(readdirSync(join(folder, 'full'))).toEqual(['there.txt'])
  })

  it('runs a repro in another folder, where its own no longer is', { timeout: 120_000 }, () => {
    const folder = folderOf({ ...files, 'node_modules/some-package/index.js': '', 'node_modules/some-package/package.json': '{ "type": "module" }' })
    const plain = readFileSync(join(folder, 'my backends/mine.mjs'), 'utf8')
      .replace("import 'some-package'", '')
      .replace(distUrl('entries/compile.js'), bundledUrl('entries/compile.js'))
    writeFileSync(join(folder, 'my backends/mine.mjs'), plain)
    const away = folderOf({})
    const tool = (...words: string[]): { readonly status: number | null; readonly output: string } => {
      const { status, stdout, stderr } = spawnSync(process.execPath, [bundledCommand, 'repro', ...words], {
        cwd: away,
        encoding: 'utf8',
      })
      return { status, output: stdout + stderr }
    }
    const packed = tool('pack', scriptIn(folder))
    expect([packed.status, existsSync(join(away, 'repro.tgz'))], packed.output).toEqual([0, true])
    removeFolder(folder)
    mkdirSync(join(away, 'new'))
    const ran = tool('run', 'repro.tgz', '--dir', 'new')
    expect(ran.status, ran.output).toBe(1)
    expect(ran.output).toMatch(/^with file:.*\/new\/modules\/mine\.mjs#mine: RangeError: no relu; with eager: passes$/m)
    const passed = tool('run', 'repro.tgz', '--backend', 'eager')
    expect([passed.status, passed.output.includes('The repro ran without an error.')], passed.output).toEqual([0, true])
    // One byte of a storage.
    const storages = join(away, 'new/storages')
    const storage = join(storages, readdirSync(storages)[0] ?? '')
    const data = readFileSync(storage)
    expect(createHash('sha1').update(data).digest('hex')).toBe(storage.split('/').at(-1))
    data[0] = 1
    writeFileSync(storage, data)
    expect(tool('run', 'new/repro.mjs').output).toContain('does not hold the bytes that its name stands for')
    rmSync(storage)
    const missing = tool('run', 'new/repro.mjs')
    expect([missing.status, missing.output.includes(`there is no file ${storage}`)], missing.output).toEqual([1, true])
  })
})
