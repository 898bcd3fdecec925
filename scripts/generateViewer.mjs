// npm run generate: bundles the program and the style of the graph page (src/fx/viewer/page) into src/fx/viewer/generated/page.ts, as texts that are written into pages.
// Runs before build, typecheck, lint and tests. What it writes is not committed.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { buildSync } from 'esbuild'

const page = fileURLToPath(new URL('../src/fx/viewer/page/', import.meta.url))
const folder = new URL('../src/fx/viewer/generated/', import.meta.url)
const target = new URL('page.ts', folder)

function bundle(file) {
  const { outputFiles } = buildSync({
    entryPoints: [`${page}${file}`],
    bundle: true,
    minify: true,
    format: 'iife',
    platform: 'browser',
    target: ['chrome111', 'firefox113', 'safari16.4'],
    // The licence of dagre asks for its notice, which the banner has.
    legalComments: 'none',
    banner: file.endsWith('.ts') ? { js: '/* Layout by dagre, (c) 2012-2014 Chris Pettitt, MIT licence: github.com/dagrejs/dagre */' } : {},
    charset: 'utf8',
    write: false,
    tsconfigRaw: {},
    logLevel: 'silent',
  })
  return outputFiles[0].text.trim()
}

/** Writes the texts. Leaves the file alone if it is up to date, so that watchers see no change. */
export function generate() {
  // `</script` and `<!--` would end or change the element that holds the program.
  const script = bundle('main.ts').replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--')
  const text = `// Written by scripts/generateViewer.mjs; not committed.
/** The program of a graph page. */
export const PAGE_SCRIPT: string = ${JSON.stringify(script)}
/** The style of a graph page, without its colours. */
export const PAGE_STYLE: string = ${JSON.stringify(bundle('style.css'))}
`
  mkdirSync(folder, { recursive: true })
  if (current() !== text) writeFileSync(target, text)
}

function current() {
  try {
    return readFileSync(target, 'utf8')
  } catch {
    return null
  }
}

if (process.argv[1] !== undefined && fileURLToPath(import.meta.url) === fileURLToPath(pathToFileURL(process.argv[1]))) generate()
