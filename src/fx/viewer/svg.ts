// Renders DOT as SVG with Graphviz compiled to WebAssembly. The package is loaded at the first use.
import { checkString } from '../../protocol/index.ts'
import { UnsupportedError } from '../../errors/index.ts'

type Engine = 'dot' | 'neato' | 'fdp' | 'circo' | 'twopi'

interface Layouter {
  layout(dot: string, format: 'svg', engine: Engine): string
}

let graphviz: Promise<Layouter> | null = null

async function load(): Promise<Layouter> {
  try {
    const { Graphviz } = await import('@hpcc-js/wasm-graphviz')
    return await Graphviz.load()
  } catch (error) {
    graphviz = null
    throw new UnsupportedError(
      `renderSvg: Graphviz could not be loaded. Install it: npm install @hpcc-js/wasm-graphviz (${error instanceof Error ? error.message : String(error)})`,
    )
  }
}

/**
 * Renders DOT as the text of an `<svg>` element: `renderSvg(new FxGraphDrawer(gm, 'net').getDotGraph())`. Throws UnsupportedError if the optional package
 * @hpcc-js/wasm-graphviz is not installed, and Graphviz' error for invalid DOT.
 */
export async function renderSvg(dot: string, engine: Engine = 'dot'): Promise<string> {
  checkString('renderSvg', 'dot', dot)
  graphviz ??= load()
  return (await graphviz).layout(dot, 'svg', engine).replace(/^[\s\S]*?(?=<svg)/, '')
}
