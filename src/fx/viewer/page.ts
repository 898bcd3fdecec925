// A graph as a single HTML page, which needs no network and no other file. Its program is in page/, which is bundled into generated/page.ts; the layout is computed here.
import { checkGraphModule } from '../../protocol/graphChecks.ts'
import { checkArgument, checkCount, checkOptions, checkString, isObject, isPlainObject } from '../../protocol/index.ts'
import type { GraphModule } from '../run/graphModule.ts'
import { htmlDocument, sheetOf } from './document.ts'
import type { PageParts } from './document.ts'
import { PAGE_SCRIPT, PAGE_STYLE } from './generated/page.ts'
import { graphParts } from './graphParts.ts'
import { graphView } from './graphView.ts'
import { partsOfFile } from './open/partsOfFile.ts'
import type { FileContents } from './open/openFile.ts'
import type { GraphCosts } from './cost.ts'

/** Options of {@link graphPage}. */
export interface GraphPageOptions {
  /** The title of the page. Default: the class name of the module. */
  readonly title?: string
  /** An earlier version of the graph. The page then shows what was added, removed and changed since. */
  readonly before?: GraphModule
  /** Show the statistics and a histogram of each parameter and buffer, for which all their values are read. Default true. */
  readonly statistics?: boolean
  /** What a profile says of the graph: the page shows time as heat, and what each node cost. */
  readonly costs?: GraphCosts
}

/**
 * The text of an HTML page that shows a graph. The graph can be moved (drag), zoomed (wheel, pinch, buttons), searched, and saved as SVG or PNG; its modules open and
 * close. For each node the page shows its configuration, arguments, shapes, parameters, users, generated code and the user's line. With `before` it shows the difference
 * of two graphs, and opens at the first change. With `costs` it shows times of a profile as heat. `?` in the page lists its keys. Files that are dropped on the page are
 * opened as by {@link filePage}.
 *
 *     await writeFile('graph.html', graphPage(gm))
 *     await writeFile('fused.html', graphPage(fused, { before: gm }))
 */
export function graphPage(gm: GraphModule, options: GraphPageOptions = {}): string {
  checkCount('graphPage', arguments, 2)
  checkGraphModule('graphPage', gm)
  checkOptions('graphPage', options, { title: true, before: true, statistics: 'boolean', costs: true })
  const { title = gm.className, before = null, statistics = true, costs = null } = options
  checkArgument(
    costs === null || (isPlainObject(costs) && isPlainObject(costs.nodes) && typeof costs.totalTime === 'number'),
    'graphPage',
    'options.costs',
    'what a profile says of a graph, as graphCosts() of a profile lists it',
    costs,
  )
  return pageOf(graphParts(graphView(gm, title, before, { statistics }), costs))
}

/**
 * The text of an HTML page that shows a file: a graph (the JSON of graphToJson, or safetensors of saveGraphModule) as {@link graphPage} does, and a file of weights (safetensors, or .pt,
 * .pth and .bin of torch.save) as a tree of its tensors with shapes, dtypes, statistics and histograms. Files are told by their bytes; `name` is the title. The file may come from anyone:
 * no code of it runs. Rejects with ArgumentError for a damaged file, and for one in another format.
 *
 *     await writeFile('weights.html', await filePage('model.pt', await readFile('model.pt')))
 */
export async function filePage(name: string, file: FileContents): Promise<string> {
  checkCount('filePage', arguments, 2)
  checkString('filePage', 'name', name)
  checkArgument(
    file instanceof Uint8Array || (isObject(file) && 'arrayBuffer' in file && 'slice' in file),
    'filePage',
    'file',
    'a Blob, or the bytes of a file as a Uint8Array',
    file,
  )
  return pageOf(await partsOfFile(name, file))
}

const pageOf = (parts: Omit<PageParts, 'sheet' | 'script'>): string => htmlDocument({ ...parts, sheet: sheetOf(PAGE_STYLE), script: PAGE_SCRIPT })
