/** Colours, type and the frame of the page. */
export const style = String.raw`
:root {
  color-scheme: light dark;
  --ground: #ffffff; --raised: #f6f8f7; --line: #e1e7e4; --ink: #13201b; --soft: #55645d;
  --accent: #0a7558; --on-accent: #ffffff; --wash: #e6f4ef; --focus: #0a7558;
  --code: #0f1d18; --code-bar: #172922; --code-line: #23392f; --code-ink: #dbe9e3; --code-soft: #8fa99d;
  --get: #1862bd; --post: #0a7558; --put: #8f5200; --patch: #6c41c2; --delete: #bb2d24;
  --mono: ui-monospace, 'SF Mono', 'Cascadia Code', 'JetBrains Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #0b120f; --raised: #111b17; --line: #21302a; --ink: #e7f0ec; --soft: #97aaa1;
    --accent: #43d9ad; --on-accent: #05231a; --wash: #10291f; --focus: #43d9ad;
    --code: #0f1a16; --code-bar: #14231d; --code-line: #22362d;
    --get: #77b4ff; --post: #43d9ad; --put: #f0b35c; --patch: #b99bff; --delete: #ff8d83;
  }
}
*, *::before, *::after { box-sizing: border-box; }
html { scroll-padding-top: 76px; -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--ground); color: var(--ink);
  font: 15px/1.6 system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif;
}
h1, h2, h3, h4, p, ol, ul { margin: 0; }
code, pre, kbd { font-family: var(--mono); }
a { color: var(--accent); text-underline-offset: 3px; }
[hidden] { display: none !important; }
.hidden {
  position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap;
}
:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px; border-radius: 6px; }
main:focus { outline: none; }
.skip { position: fixed; top: -60px; left: 16px; z-index: 40; padding: 8px 14px; background: var(--ground); }
.skip:focus { top: 10px; }
input, select, textarea, button { font: inherit; color: inherit; }
input, select, textarea {
  width: 100%; min-width: 0; padding: 7px 10px; background: var(--ground); color: var(--ink);
  border: 1px solid var(--line); border-radius: 8px;
}
input::placeholder { color: var(--soft); opacity: 1; }
textarea { font-family: var(--mono); }
button { cursor: pointer; }

.bar {
  position: sticky; top: 0; z-index: 30; display: flex; align-items: center; gap: 20px; height: 60px;
  padding: 0 24px; background: var(--ground); border-bottom: 1px solid var(--line);
}
.brand { display: flex; align-items: center; gap: 10px; color: inherit; text-decoration: none; }
.brand .name { font-size: 17px; font-weight: 650; letter-spacing: -0.01em; }
.version {
  padding: 1px 8px; font: 12px/1.6 var(--mono); color: var(--soft); background: var(--raised);
  border: 1px solid var(--line); border-radius: 20px;
}
.version:empty { display: none; }
.mark { display: block; }
.mark-ground { fill: var(--accent); }
.mark-back, .mark-front { fill: none; stroke: var(--on-accent); stroke-width: 2.6; stroke-linecap: round; }
.mark-back { opacity: 0.5; }
.menu { display: none; width: 40px; height: 40px; padding: 0; background: none; border: 0; border-radius: 8px; }
.lines, .lines::before, .lines::after {
  display: block; width: 20px; height: 2px; margin: 0 auto; background: currentColor; border-radius: 2px;
}
.lines { position: relative; }
.lines::before, .lines::after { content: ''; position: absolute; left: 0; }
.lines::before { top: -6px; }
.lines::after { top: 6px; }
.find { position: relative; flex: 1; max-width: 420px; margin-left: auto; }
.find input { background: var(--raised); padding-right: 38px; }
.find kbd {
  position: absolute; right: 9px; top: 8px; padding: 0 7px; font-size: 12px; line-height: 20px; color: var(--soft);
  background: var(--ground); border: 1px solid var(--line); border-radius: 5px; pointer-events: none;
}
.find input:focus + kbd { display: none; }
.credential input { width: 230px; background: var(--raised); }

.shell { display: grid; grid-template-columns: 286px minmax(0, 1fr); }
.navigation {
  position: sticky; top: 60px; align-self: start; height: calc(100vh - 60px); padding: 20px 14px 60px;
  overflow-y: auto; overscroll-behavior: contain; background: var(--raised); border-right: 1px solid var(--line);
  scrollbar-width: thin; scrollbar-color: var(--line) transparent;
}
.navigation h2 {
  margin: 20px 10px 6px; font-size: 12px; font-weight: 650; letter-spacing: 0.05em; text-transform: uppercase;
  color: var(--soft);
}
.navigation section:first-child h2 { margin-top: 0; }
.navigation ul { padding: 0; list-style: none; }
.navigation a {
  display: flex; align-items: baseline; gap: 10px; padding: 5px 10px; color: var(--ink); text-decoration: none;
  font-size: 13.5px; line-height: 1.4; border-radius: 7px;
}
.navigation a:hover { background: var(--wash); }
.navigation a[aria-current] { background: var(--wash); color: var(--accent); font-weight: 600; }
.navigation .method { flex: none; width: 34px; font-size: 10px; }

main { padding: 0 48px 120px; max-width: 1360px; }
.hero {
  display: grid; grid-template-columns: minmax(0, 1fr) 230px; gap: 64px; align-items: center; padding: 60px 0 52px;
  border-bottom: 1px solid var(--line);
}
.eyebrow { font-size: 13px; font-weight: 650; color: var(--accent); }
.hero h1 { font-size: 44px; line-height: 1.15; letter-spacing: -0.03em; font-weight: 700; }
.lead { margin: 6px 0 18px; font-size: 20px; line-height: 1.45; letter-spacing: -0.01em; color: var(--soft); }
#introduction p { max-width: 68ch; margin-bottom: 10px; }
#introduction code, .prose code, td code, .muted code {
  padding: 1px 5px; font-size: 0.88em; background: var(--raised); border: 1px solid var(--line); border-radius: 5px;
  overflow-wrap: anywhere;
}
.actions { display: flex; flex-wrap: wrap; align-items: center; gap: 12px 18px; margin-top: 22px; }
.button {
  display: inline-block; padding: 8px 16px; color: var(--on-accent); background: var(--accent); font-weight: 600;
  border: 0; border-radius: 8px; text-decoration: none;
}
.button:hover { filter: brightness(1.08); }
.facts { font-size: 14px; color: var(--soft); }
.chain { display: grid; gap: 26px; padding: 0; list-style: none; }
.chain li {
  position: relative; display: grid; grid-template-columns: auto 1fr; gap: 2px 12px; padding: 12px 14px;
  font: 12px/1.6 var(--mono); background: var(--raised); border: 1px solid var(--line); border-radius: 10px;
}
.chain li + li::before {
  content: ''; position: absolute; left: 50%; top: -27px; width: 2px; height: 26px; background: var(--accent);
}
.chain b { font-weight: 650; }
.chain span { text-align: right; color: var(--soft); }
.chain i { font-style: normal; color: var(--soft); }
.chain em { font-style: normal; text-align: right; color: var(--accent); }
.nothing { padding: 40px 0; color: var(--soft); }

@media (max-width: 1040px) {
  .hero { grid-template-columns: minmax(0, 1fr); padding: 40px 0; }
  .chain { grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 22px; }
  .chain li + li::before { left: -23px; top: 50%; width: 22px; height: 2px; }
}
@media (max-width: 860px) {
  .bar { gap: 10px; padding: 0 12px; }
  .menu { display: block; }
  .shell { grid-template-columns: minmax(0, 1fr); }
  .navigation { display: none; position: fixed; inset: 60px 0 0; z-index: 20; height: auto; border: 0; }
  .navigation.open { display: block; }
  .navigation a { padding: 9px 10px; font-size: 15px; }
  .credential input { width: 150px; }
  main { padding: 0 18px 80px; }
}
@media (max-width: 560px) {
  .brand .name, .version, .find kbd { display: none; }
  .credential input { width: 112px; }
  .find input { padding-right: 10px; }
  .hero h1 { font-size: 36px; }
  .lead { font-size: 18px; }
  .chain li { grid-template-columns: minmax(0, 1fr); padding: 10px; font-size: 11px; }
  .chain { gap: 14px; }
  .chain li + li::before { left: -15px; width: 14px; }
  .chain span, .chain em { text-align: left; }
  .chain i { display: none; }
}
`
