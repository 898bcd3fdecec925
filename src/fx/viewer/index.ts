// Views of graphs: an interactive HTML page, flowcharts for Markdown, and SVG. PyTorch's FxGraphDrawer is in fx/passes.
export { graphPage } from './page.ts'
export type { GraphPageOptions } from './page.ts'
export { graphView } from './graphView.ts'
export type { GraphViewOptions } from './graphView.ts'
export type { Change, GraphView, TargetFacts, ViewLine, ViewModule, ViewNode, ViewStatistics, ViewTensor } from './view.ts'
export { mermaid } from './mermaid.ts'
export type { MermaidOptions } from './mermaid.ts'
export { renderSvg } from './svg.ts'
