// Renders DOT as SVG with Graphviz compiled to WebAssembly. The package is loaded at the first use.
import { checkArgument, checkCount, checkString } from '../../protocol/index.ts'
import { ArgumentError, UnsupportedError, messageOf } from '../../errors/index.ts'

const ENGINES = ['dot', 'neato', 'fdp', 'circo', 'twopi'] as const
type Engine = (typeof ENGINES)[number]

interface Layouter {
  layout(dot: string, format: 'svg', engine: Engine): string
}

let graphviz: Promise<Layouter> | null = null

async function load(): Promise<Layouter> {
  try {
    const { Graphviz } = await import('@hpcc-js/wasm-graphviz')
    // The package keeps its instance, also one whose code has trapped.
    Graphviz.unload()
    return await Graphviz.load()
  } catch (error) {
    graphviz = null
    throw new UnsupportedError(`renderSvg: Graphviz could not be loaded. Install it: npm install @hpcc-js/wasm-graphviz (${messageOf(error)})`)
  }
}

const hasTrapped = (error: unknown): boolean => error instanceof WebAssembly.RuntimeError

async function draw(dot: string, engine: Engine): Promise<string> {
  graphviz ??= load()
  const layouter = await graphviz
  try {
    return layouter.layout(dot, 'svg', engine).replace(/^[\s\S]*?(?=<svg)/, '')
  } catch (error) {
    // Its memory is in no known state.
    if (hasTrapped(error)) graphviz = null
    throw error
  }
}

/**
 * Renders DOT as the text of an `<svg>` element: `renderSvg(new FxGraphDrawer(gm, 'net').getDotGraph())`. Throws UnsupportedError if the optional package
 * @hpcc-js/wasm-graphviz is not installed, and ArgumentError for another engine, and with what Graphviz says for text that is not DOT.
 */
export async function renderSvg(dot: string, engine: Engine = 'dot'): Promise<string> {
  checkCount('renderSvg', arguments, 2)
  checkString('renderSvg', 'dot', dot)
  checkArgument(ENGINES.includes(engine), 'renderSvg', 'engine', `one of ${ENGINES.join(', ')}`, engine)
  try {
    return await draw(dot, engine).catch((error: unknown) => {
      if (hasTrapped(error)) return draw(dot, engine)
      throw error
    })
  } catch (error) {
    if (error instanceof UnsupportedError) throw error
    throw new ArgumentError(
      `renderSvg: Graphviz cannot draw the text of argument 'dot': ${error instanceof Error ? error.message.trim() : String(error)}`,
      {
        cause: error,
      },
    )
  }
}
