// The style of the demo's report, for light and dark mode.
export const STYLE = `
:root { color-scheme: light dark; --page: #f5f6f8; --panel: #ffffff; --ink: #1c2430; --soft: #56616f; --line: #dbe0e7; --code: #f3f5f8; --loss: #2a62c4; --accuracy: #b4521d; --link: #1a5bc8; }
@media (prefers-color-scheme: dark) { :root { --page: #11151b; --panel: #1a2029; --ink: #e7ebf1; --soft: #9aa7b6; --line: #2d3642; --code: #141a22; --loss: #6ea2f5; --accuracy: #e08a58; --link: #6aa8ff; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 36px 24px 64px; }
h1 { margin: 0 0 2px; font-size: 27px; font-weight: 650; } h2 { margin: 0 0 4px; font-size: 18px; font-weight: 650; } p { margin: 0 0 14px; color: var(--soft); }
a { color: var(--link); }
section { background: var(--panel); border: 1px solid var(--line); border-radius: 12px; padding: 20px 24px 22px; margin-top: 20px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(200px, 1fr)); gap: 14px; margin-top: 20px; }
.tile { background: var(--panel); border: 1px solid var(--line); border-radius: 12px; padding: 14px 18px; } .tile b { display: block; font-size: 26px; font-weight: 650; line-height: 1.3; } .tile span { color: var(--soft); }
iframe { display: block; width: 100%; height: 640px; border: 1px solid var(--line); border-radius: 8px; background: var(--page); }
kbd { font: 12px ui-monospace, Menlo, Consolas, monospace; background: var(--page); border: 1px solid var(--line); border-bottom-width: 2px; border-radius: 4px; padding: 1px 6px; }
pre { background: var(--code); border: 1px solid var(--line); border-radius: 8px; padding: 14px 16px; overflow: auto; font: 13px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; margin: 0; }
.scroll { overflow-x: auto; margin-bottom: 14px; }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; padding: 7px 10px; border-bottom: 1px solid var(--line); } th { font-size: 13px; font-weight: 600; color: var(--soft); }
.n { text-align: right; font-variant-numeric: tabular-nums; } .wide { width: 45%; min-width: 120px; } tr:last-child td { border-bottom: 0; }
.bar { background: var(--accuracy); height: 10px; border-radius: 3px; min-width: 2px; }
.legend { display: flex; gap: 18px; margin-bottom: 14px; font-size: 13px; color: var(--soft); } .legend span::before { content: ""; display: inline-block; width: 18px; height: 3px; border-radius: 2px; margin-right: 7px; vertical-align: 3px; background: currentColor; }
.legend .loss::before { background: var(--loss); } .legend .accuracy::before { background: var(--accuracy); }
.chart { display: grid; grid-template-columns: 40px minmax(0, 1fr) 46px; height: 280px; } .chart svg { width: 100%; height: 100%; overflow: visible; }
.chart path { fill: none; vector-effect: non-scaling-stroke; } .chart .grid { stroke: var(--line); } .chart .loss { stroke: var(--loss); stroke-width: 1.75; } .chart .accuracy { stroke: var(--accuracy); stroke-width: 2.25; }
.axis { position: relative; font-size: 12px; font-variant-numeric: tabular-nums; } .axis span { position: absolute; transform: translateY(-50%); }
.axis.left span { right: 8px; color: var(--loss); } .axis.right span { left: 8px; color: var(--accuracy); }
.steps { display: flex; justify-content: space-between; padding: 6px 46px 0 40px; margin: 0; font-size: 12px; }
@media (max-width: 760px) { main { padding: 20px 12px 40px; } section { padding: 16px 14px; } iframe { height: 72vh; } .chart { height: 220px; } }
@media print { body { background: #fff; } section { break-inside: avoid; } }
`
