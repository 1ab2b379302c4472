/** What stands in the page before its script fills it in from /openapi.json. */
export const markup = String.raw`
<a class="skip" href="#content">Skip to the content</a>
<header class="bar">
  <button type="button" class="menu" id="menu" aria-expanded="false" aria-controls="navigation">
    <span class="lines" aria-hidden="true"></span><span class="hidden">Contents</span>
  </button>
  <a class="brand" href="#content" aria-label="Strandfast, to the top">
    <svg class="mark" viewBox="0 0 32 32" width="28" height="28" aria-hidden="true">
      <rect width="32" height="32" rx="8" class="mark-ground"/>
      <path d="M10 5c0 7 12 7 12 11s-12 4-12 11" class="mark-back"/>
      <path d="M22 5c0 7-12 7-12 11s12 4 12 11" class="mark-front"/>
    </svg>
    <span class="name">Strandfast</span><span class="version" id="version"></span>
  </a>
  <div class="find">
    <input id="search" type="search" placeholder="Search" aria-label="Search operations"
      autocomplete="off" spellcheck="false"><kbd aria-hidden="true">/</kbd>
  </div>
  <div class="credential">
    <input id="key" type="password" placeholder="API key, in memory only" aria-label="API key" autocomplete="off" spellcheck="false"
      data-1p-ignore data-lpignore="true">
  </div>
</header>
<div class="shell">
  <nav id="navigation" class="navigation" aria-label="Operations"></nav>
  <main id="content" tabindex="-1">
    <section class="hero" id="start" aria-labelledby="title">
      <div class="hero-text">
        <p class="eyebrow">HTTP interface</p>
        <h1 id="title">Strandfast</h1>
        <p class="lead" id="lead"></p>
        <div id="introduction"></div>
        <p class="actions">
          <a class="button" href="/openapi.json">OpenAPI document</a>
          <span class="facts" id="facts"></span>
        </p>
      </div>
      <ol class="chain" aria-hidden="true">
        <li><b>seq 0</b><span>sys/genesis</span><i>prev 000000…</i><em>3fb907e7…</em></li>
        <li><b>seq 1</b><span>reading</span><i>prev 3fb907…</i><em>b5d4045c…</em></li>
        <li><b>seq 2</b><span>reading</span><i>prev b5d404…</i><em>4e074085…</em></li>
      </ol>
    </section>
    <p id="nothing" class="nothing" hidden></p>
    <div id="operations" aria-busy="true"><p class="nothing">Reading the document…</p></div>
  </main>
</div>
<p class="hidden" id="announcement" role="status"></p>
<noscript><p class="nothing">This page reads <a href="/openapi.json">/openapi.json</a> by script.</p></noscript>
`
