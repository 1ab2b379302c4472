/** Operations: their text, tables, code and the form that tries them. */
export const operationsStyle = String.raw`
.group { padding-top: 56px; }
.group > h2 { font-size: 28px; line-height: 1.25; letter-spacing: -0.02em; }
.group > .prose { margin-top: 4px; font-size: 16px; color: var(--soft); }
.operation {
  padding: 34px 0 40px; border-bottom: 1px solid var(--line);
}
.operation h3 { font-size: 19px; line-height: 1.35; letter-spacing: -0.01em; font-weight: 650; }
.operation h3 a { color: inherit; text-decoration: none; }
.operation h3 a:hover { text-decoration: underline; text-decoration-thickness: 1px; }
.signature {
  display: flex; flex-wrap: wrap; align-items: center; gap: 6px 12px; margin-top: 12px; padding: 8px 12px;
  background: var(--raised); border: 1px solid var(--line); border-radius: 10px;
}
.signature .method { padding: 2px 9px; background: var(--ground); border: 1px solid currentColor; border-radius: 6px; }
.signature code { font-size: 14px; overflow-wrap: anywhere; }
.signature code b { font-weight: 600; color: var(--accent); }
.method { font: 700 12px/1.5 var(--mono); text-transform: uppercase; }
.get { color: var(--get); } .post { color: var(--post); } .put { color: var(--put); }
.patch { color: var(--patch); } .delete { color: var(--delete); }
.scope { margin-left: auto; font-size: 13px; color: var(--soft); }
.scope code { padding: 2px 8px; font-size: 12px; color: var(--ink); background: var(--ground); border: 1px solid var(--line); border-radius: 20px; }
.columns { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 470px); gap: 40px; margin-top: 20px; }
.about > h4 { margin: 26px 0 8px; font-size: 14px; font-weight: 650; }
.about > h4:first-child { margin-top: 0; }
.about > h4 code { margin-left: 6px; font-size: 12px; font-weight: 400; color: var(--soft); }
.muted { color: var(--soft); font-size: 14px; }

table { width: 100%; border-collapse: collapse; font-size: 14px; line-height: 1.5; }
th { text-align: left; font-weight: 600; font-size: 12px; color: var(--soft); padding: 0 12px 6px 0; }
td { padding: 9px 12px 9px 0; vertical-align: top; border-top: 1px solid var(--line); }
td:last-child, th:last-child { padding-right: 0; }
td.member { width: 30%; }
td.member > div { padding-left: calc(var(--depth, 0) * 16px); }
td.member code { padding: 0; font-size: 13px; font-weight: 600; background: none; border: 0; }
td.kind { width: 19%; color: var(--soft); font-size: 13px; }
.needed, .optional { display: block; font-size: 12px; color: var(--delete); }
.optional { color: var(--soft); }
.either td { padding: 12px 0 6px; font-size: 13px; font-weight: 650; color: var(--accent); }
.either td > div { padding-left: calc(var(--depth, 0) * 16px); }
.notes { display: flex; flex-wrap: wrap; gap: 4px 12px; font-size: 13px; color: var(--soft); }
.notes code { font-size: 12px; color: var(--ink); overflow-wrap: anywhere; }
.answers { display: grid; grid-template-columns: minmax(0, 1fr); border: 1px solid var(--line); border-radius: 10px; overflow: hidden; }
.answers details + details { border-top: 1px solid var(--line); }
.answers summary {
  display: flex; align-items: baseline; gap: 12px; padding: 9px 14px; font-size: 14px; cursor: pointer; list-style: none;
}
.answers summary::-webkit-details-marker { display: none; }
.answers summary::after { content: ''; flex: none; width: 7px; height: 7px; margin: 0 3px 3px auto; border: solid var(--soft); border-width: 0 1.5px 1.5px 0; transform: rotate(45deg); }
.answers details[open] > summary::after { transform: rotate(-135deg); margin-bottom: -2px; }
.answers summary:hover { background: var(--raised); }
.answers summary:focus-visible { outline-offset: -2px; }
.answers summary > span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; color: var(--soft); }
.answers details[open] > summary > span { white-space: normal; }
.answers .inside { display: grid; gap: 10px; padding: 4px 14px 14px; }
.code-status { font: 650 13px/1.5 var(--mono); }
.good { color: var(--post); } .wrong { color: var(--put); } .broken { color: var(--delete); }

.side { display: grid; gap: 16px; align-content: start; }
@media (min-width: 1181px) { .side { position: sticky; top: 80px; align-self: start; max-height: calc(100vh - 100px); overflow-y: auto; scrollbar-width: thin; scrollbar-color: var(--line) transparent; border-radius: 12px; } }
.panel { min-width: 0; color: var(--code-ink); background: var(--code); border: 1px solid var(--code-line); border-radius: 12px; overflow: hidden; }
.panel > header {
  display: flex; align-items: center; gap: 10px; min-height: 40px; padding: 4px 8px 4px 16px; font-size: 12.5px;
  font-weight: 600; background: var(--code-bar); border-bottom: 1px solid var(--code-line);
}
.panel > header .choice { width: auto; max-width: 190px; padding: 2px 6px; font-size: 12.5px; color: var(--code-ink); background: var(--code); border-color: var(--code-line); border-radius: 6px; }
.panel > header .space { flex: 1; }
.panel pre { margin: 0; padding: 14px 16px; max-height: 420px; overflow: auto; font-size: 12.5px; line-height: 1.65; white-space: pre; tab-size: 2; scrollbar-width: thin; scrollbar-color: var(--code-line) transparent; }
.panel :focus-visible { outline-color: #43d9ad; outline-offset: -2px; }
.copy { padding: 3px 10px; font-size: 12px; font-weight: 600; color: var(--code-soft); background: none; border: 1px solid var(--code-line); border-radius: 6px; }
.copy:hover { color: var(--code-ink); border-color: var(--code-soft); }
.t-name { color: #8fd6ff; } .t-text { color: #a8e6a1; } .t-number { color: #f7c378; } .t-word { color: #d6b4ff; }

.try { border: 1px solid var(--line); border-radius: 12px; overflow: hidden; }
.try > summary { display: flex; align-items: center; gap: 10px; padding: 10px 16px; font-weight: 600; font-size: 14px; cursor: pointer; background: var(--raised); list-style: none; }
.try > summary::-webkit-details-marker { display: none; }
.try > summary::before { content: ''; width: 0; height: 0; border: solid transparent; border-width: 5px 0 5px 8px; border-left-color: var(--accent); }
.try[open] > summary::before { transform: rotate(90deg); }
.try > summary:focus-visible { outline-offset: -2px; border-radius: 12px; }
.try form { display: grid; gap: 10px; padding: 14px 16px 16px; border-top: 1px solid var(--line); }
.field { display: grid; grid-template-columns: 128px minmax(0, 1fr); align-items: center; gap: 4px 10px; font-size: 13px; }
.field label { font: 600 12.5px/1.4 var(--mono); overflow-wrap: anywhere; }
.field label small { display: block; font: 11.5px/1.4 system-ui, sans-serif; color: var(--soft); }
.field input, .field select { padding: 5px 9px; font-size: 13px; }
.field.whole { grid-template-columns: minmax(0, 1fr); }
.field textarea { min-height: 132px; padding: 10px; font-size: 12.5px; line-height: 1.6; resize: vertical; white-space: pre; overflow: auto; }
.send { display: flex; flex-wrap: wrap; align-items: center; gap: 10px 14px; }
.send .button.risky { background: var(--delete); color: var(--ground); }
.send .stop { padding: 7px 14px; background: none; border: 1px solid var(--line); border-radius: 8px; }
.result { border-top: 1px solid var(--line); }
.result > p { display: flex; flex-wrap: wrap; gap: 4px 14px; padding: 10px 16px; font-size: 13px; }
.result .panel { border-width: 1px 0 0; border-radius: 0; }
.result details { padding: 0 16px 10px; font-size: 13px; }
.result details summary { cursor: pointer; color: var(--soft); }
.result dl { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: 2px 14px; margin: 8px 0 0; font: 12px/1.6 var(--mono); }
.result dt { color: var(--soft); } .result dd { margin: 0; overflow-wrap: anywhere; }

.plain { margin-top: 18px; }
.plain td:first-child { width: 300px; }
.plain tr:target td { background: var(--wash); }
@media (max-width: 1180px) { .columns { grid-template-columns: minmax(0, 1fr); gap: 26px; } }
@media (max-width: 620px) {
  .scope { margin-left: 0; width: 100%; }
  .group > h2 { font-size: 24px; }
  table, tbody, tr, td { display: block; width: auto; }
  thead { display: none; }
  td, td.member, td.kind, .plain td:first-child { width: auto; padding: 0; border: 0; }
  tr { padding: 10px 0; border-top: 1px solid var(--line); }
  td.member { display: inline-block; }
  td.member > div { display: flex; gap: 10px; align-items: baseline; }
  td.kind { display: inline-block; margin-left: 10px; }
  td.words > * { padding-left: calc(var(--depth, 0) * 16px); }
  .field { grid-template-columns: minmax(0, 1fr); }
}
@media print { .bar, .navigation, .try, .copy { display: none; } .shell, .columns { display: block; } }
`
