// The built package in few files, for tests and scripts that start programs again and again: a process imports `tensorfx` from here in half of the time that the hundreds of
// modules of dist/ take. It is a package of its own, with the same entries, so that a program and the processes that it starts share one copy. `node scripts/bundled.mjs` makes it
// beforehand.
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const dist = join(root, 'dist')
const place = join(root, '.bundled')

/** What programs import or start: the entries, the command, and what they start themselves. */
const ENTRIES = /^(?:index|entries\/.*|cli\/main|cli\/run\/\w+|rewriter\/hooks|debug\/isolate\/watchdog)\.js$/
/** The manifest, programs of tests that import `tensorfx` by its name, and what they read: it must be this copy. */
const COPIED = [
  'package.json',
  'test/distributed/scenarios',
  'test/goldens/distributed',
  'test/data/fixtures',
  'scripts/fuzz/random.mjs',
  'scripts/kills',
  'examples/data',
  'examples/gpt',
  'examples/lstm',
  'examples/resnet18',
  'examples/unet',
]

const HOUR = 3_600_000

/** The constant of a module that holds its address. */
const ADDRESS = 'addressOfModule'

/** Says whether files have changed. */
function keyOf(files) {
  const hash = createHash('sha256')
  for (const file of files) {
    const { mtimeMs, size } = statSync(file)
    hash.update(`${file} ${mtimeMs} ${size}\n`)
  }
  return hash.digest('hex').slice(0, 16)
}

const filesIn = (path) =>
  statSync(path).isFile()
    ? [path]
    : readdirSync(path, { recursive: true, encoding: 'utf8' })
        .toSorted()
        .map((name) => join(path, name))
        .filter((file) => statSync(file).isFile())

/** Writes the package into `folder`; it will be in `home`. */
async function write(folder, home, files) {
  const { build } = await import('esbuild')
  await build({
    entryPoints: files.filter((file) => ENTRIES.test(relative(dist, file).replaceAll('\\', '/'))),
    outbase: dist,
    outdir: join(folder, 'dist'),
    bundle: true,
    splitting: true,
    keepNames: true,
    format: 'esm',
    platform: 'node',
    packages: 'external',
    tsconfigRaw: {},
    logLevel: 'error',
    define: { 'import.meta.url': ADDRESS },
    plugins: [
      {
        name: 'addresses',
        // What a module finds by its own address is where it would be without the bundle.
        setup({ onLoad }) {
          onLoad({ filter: /\.js$/ }, ({ path }) => {
            const text = readFileSync(path, 'utf8')
            if (!text.includes('import.meta.url')) return undefined
            return { contents: `var ${ADDRESS} = ${JSON.stringify(pathToFileURL(join(home, relative(root, path))).href)};${text}` }
          })
        },
      },
    ],
  })
  for (const path of COPIED) cpSync(join(root, path), join(folder, path), { recursive: true })
}

/** The folder of the package. It is made if dist/ has changed since the last time. */
async function bundled() {
  if (!existsSync(join(dist, 'index.js'))) throw new Error('There is no dist/. Run npm run build first.')
  const files = filesIn(dist).filter((file) => file.endsWith('.js'))
  const home = join(place, keyOf([...files, ...COPIED.flatMap((path) => filesIn(join(root, path))), fileURLToPath(import.meta.url)]))
  if (existsSync(home)) return home
  mkdirSync(place, { recursive: true })
  // Processes of tests may do this at the same time: the first that is ready counts.
  const folder = mkdtempSync(join(place, 'new-'))
  await write(folder, home, files)
  try {
    renameSync(folder, home)
  } catch (error) {
    rmSync(folder, { recursive: true })
    if (!existsSync(home)) throw error
  }
  // Tests that began before the last build may still run on the package of then.
  for (const other of readdirSync(place).map((name) => join(place, name)))
    if (Date.now() - (statSync(other, { throwIfNoEntry: false })?.mtimeMs ?? Infinity) > HOUR) rmSync(other, { recursive: true, force: true })
  return home
}

/** The folder of the package. */
export const bundledHome = await bundled()

/** A file of the package: a program, or a built file. */
export const bundledFile = (path) => join(bundledHome, path)

/** The command, `tensorfx`. */
export const bundledCommand = bundledFile('dist/cli/main.js')

/** The address of a built file that programs import or start. */
export const bundledUrl = (path) => pathToFileURL(bundledFile(`dist/${path}`)).href
