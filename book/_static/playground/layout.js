// What stands where in the playground. An element that scripts fill or listen to is named by data-part.

import { fullBar } from "./bars.js";
import { BARS, LONGEST } from "./state.js";

export const BEGINNINGS = ["One sunny morning", "Once upon a time", "Mia was a"];
export const MOMENTS_MB = 1.1; // of the moments of training that are not here at first
const NO_STORY = "The dragon said";

const beginning = (text, more = "") => `<button type="button" data-beginning="${text}">${text}${more}</button>`;

// Opens this large, for a class.
const largeButton = (name, what) => `<button type="button" class="tt-play__large" data-lesson="${name}" aria-label="Full screen: ${what}">Full screen</button>`;

// What only some want to know: terms, units, how it was measured.
const deeper = (body) => `<details class="tt-play__deeper"><summary>More</summary>${body}</details>`;

const scale = (text = "") => `<th scope="col" class="tt-play__scale"><span class="visually-hidden">bars</span> <span>${text}</span></th>`;

export const bars = (part, name) => `<table class="tt-play__bars" ${name}>
    <thead><tr><th scope="col">token</th>${scale()}
      <th scope="col" class="tt-play__model">the model</th><th scope="col" class="tt-play__truth">the truth</th></tr></thead>
    <tbody data-part="${part}"></tbody></table>`;

const core = (compact) => `
<div class="tt-play__beginnings">${compact ? '<button type="button" data-part="tour">Show me in a minute</button>' : ""}
  <div role="group" aria-label="Beginnings to choose from">
  ${BEGINNINGS.map((text) => beginning(text)).join("")}${beginning(NO_STORY, " <small>(in no story)</small>")}
  </div></div>
<div class="tt-play__write" role="group" aria-label="Let the model write on">
  <span>Write a</span>
  <button type="button" data-write="token" aria-label="Write a token">token</button>
  <button type="button" data-write="sentence" aria-label="Write a sentence">sentence</button>
  <button type="button" data-write="story" aria-label="Write a story">story</button>
  <button type="button" data-part="takeBack" aria-label="Take back" title="Take back the last change">↶</button>
</div>
<div class="tt-play__text">
  <label class="visually-hidden" for="tt-play-field">The beginning of a story</label>
  <textarea id="tt-play-field" data-part="field" rows="1" spellcheck="false" autocapitalize="sentences"
    autocomplete="off" maxlength="${LONGEST}"></textarea>
  <p class="tt-play__label" data-part="count"></p>
  <ol class="tt-play__tokens" data-part="tokens" aria-label="The tokens"></ol>
  <p class="tt-play__note" data-part="note" hidden></p>
  ${compact ? '<button type="button" data-part="mendAll" hidden>Put everything back</button>' : ""}
</div>
<div class="tt-play__next">
  <p class="tt-play__label" data-part="heading" id="tt-play-next">What comes next?</p>
  <p class="tt-play__verdict"><strong data-part="verdict"></strong> <span data-part="reason"></span></p>
  <p class="tt-play__about" data-part="about"></p>
  ${bars("bars", 'aria-labelledby="tt-play-next"')}
  <span id="tt-play-writes" hidden>press to write it</span>
  <button type="button" class="tt-play__back" data-part="back" hidden>Back to the end of the text</button>
</div>
<div class="tt-play__act">
  ${slider("Temperature", "temperature", 'min="0" max="2" step="0.05"', ["likeliest only", "nearly anything"])}
  ${compact ? "" : more}
</div>`;

// What is seen beside a slider is said by its value alone.
const slider = (name, part, range, ends) => `<label class="tt-play__slider${ends ? " tt-play__slider--ends" : ""}"><span>${name}</span>
    <input type="range" data-part="${part}" ${range}>
    <span class="tt-play__is" data-part="${part}Is" aria-hidden="true"></span>
    ${ends ? `<small class="tt-play__ends" aria-hidden="true"><span>${ends[0]}</span><span>${ends[1]}</span></small>` : ""}</label>`;

const more = `
  ${slider("Top-k", "topK", 'min="1" max="21" step="1"')}
  ${slider("Top-p", "topP", 'min="0.05" max="1" step="0.05"')}
  <p class="tt-play__note">Top-k keeps only so many of the likeliest tokens; top-p the fewest of the likeliest that together have at least this share. The
    rest is never drawn.</p>
  <div class="tt-play__links">
    <button type="button" data-part="share">Copy a link to this</button>
    <button type="button" data-part="picture" aria-expanded="false">Share a picture</button>
    ${largeButton(BARS, "the bars")}
    <button type="button" data-part="python">Open in Python</button>
    <span data-part="shared"></span>
  </div>
  <div data-part="sharing" hidden></div>`;

const fold = (name, question, body) => `
<details class="tt-play__fold" data-fold="${name}"><summary>${question}</summary>
  <div>${largeButton(name, question)}${body}</div></details>`;

// The model at five moments of its training, and the one that is trained here.
const learn = `
  <p>Drag, and it learns to write: one model at five moments of its training, with the same random numbers.</p>
  ${slider("Training", "step", 'min="0" max="4" step="1"', ["untrained", "trained"])}
  <p class="tt-play__note" data-part="costs">The other moments come when you first move it: ${MOMENTS_MB} MB.</p>
  <p class="tt-play__note" data-part="fetching" hidden></p>
  <p class="tt-play__story"><span data-part="begun"></span><span data-part="wrote"></span></p>
  <div class="tt-play__learned"><p data-part="learned"></p>
  ${bars("learnedBars", 'aria-label="The likeliest tokens at this moment"')}</div>`;

const train = `<section class="tt-train" aria-labelledby="tt-train"><h2 id="tt-train">Train your own</h2>
  <p>Watch a model of your own learn to write in this tab, from random numbers.
    <button type="button" data-part="trainHere">Train one here</button></p>
  <div data-part="training"></div></section>`;

const folds = (root) => [
  fold("training", "How did it learn this?", learn),
  fold("attention", "Where does it look?", `
    <p>To choose its next word, the model looks back at what it has read. Each token looks at those before it. A head is one pair of eyes: it decides at which, and how much. A block is one round
      of reading, with four heads; this model has two. Press a token to see from it. <a href="${root}attention/scaled-dot-product.html">How attention works</a></p>
    <p>Will it go on with <em>he</em> or <em>she</em>? To know, head 1 of block 2 looks back from <em>There</em> at the name.
      <button type="button" data-part="example">Show it</button></p>
    <div class="tt-play__heads" data-part="heads"></div>
    <p class="tt-play__note" data-part="silent" hidden></p>
    <div class="tt-play__looks" data-part="looks">
      <svg aria-hidden="true" data-part="lines"></svg>
      <ol class="tt-play__tokens" data-part="looking" aria-label="Tokens to look from"></ol></div>
    <div class="tt-play__scroll" tabindex="0" role="group" aria-label="The same as numbers">
      <table class="tt-play__table"><caption data-part="looksFrom"></caption>
      <thead><tr><th scope="col">looks at</th><th scope="col">how much</th></tr></thead>
      <tbody data-part="weights"></tbody></table></div>`),
  fold("lens", "When does it know?", `
    <p>The model thinks in two blocks, one after the other. Here is what it would say if it had to answer earlier.</p>
    <table class="tt-play__table"><caption class="visually-hidden">The three likeliest tokens, layer by layer</caption>
      <thead><tr><th scope="col">if it answered</th><th scope="col" colspan="3">it would expect</th></tr></thead>
      <tbody data-part="lens"></tbody></table>`),
  fold("beliefs", "Does it know which animal will come?", `
    <p>Where a story happens tells which animals can come, long before one is named. Does the model know that too? The upper bars are
      read off the numbers inside it, the lower ones are the truth.</p>
    <div class="tt-play__links" role="group" aria-label="Places in a story">
      <button type="button" data-part="due">Right before the animal</button>
      <button type="button" data-part="early">A token earlier</button>
      <button type="button" data-part="beforeHe">Right before “he”</button></div>
    <p data-part="believed"></p>
    <table class="tt-play__bars" aria-label="The animal, and girl or boy">
      <thead><tr><th scope="col">in the story</th>${scale(fullBar("100 %"))}
        <th scope="col" class="tt-play__model">read off</th><th scope="col" class="tt-play__truth">the truth</th></tr></thead>
      <tbody data-part="animal"></tbody><tbody data-part="child"></tbody></table>
    ${deeper(`<p>A <em>probe</em>, a small sum, is fitted to read them from the 64 numbers with which the model ends at a token. Right before the
      animal it comes close to the truth; a token earlier it says hardly more than how often each animal comes in all stories. Nor need the
      model hold these probabilities: the probe reads the <em>place</em>, and could have learned other numbers for it nearly as well. Girl
      or boy is read well right before <em>he</em> or <em>she</em>, elsewhere mostly badly.
      <a href="${root}inside/what-it-knows.html">How the book found this</a></p>
    <p>It was fitted on 1,500 stories: for the animal, at all tokens from the place on, up to where it is
      known; for girl or boy, at all tokens. It can miss the range from 0 to 100 %, where it is cut off, and its rows can come to more
      than 100 % together. For what is in common they are scaled down.</p>`)}`),
  fold("surprise", "How surprised was it so far?", `
    <p>The less something is expected, the larger the surprise: 0 for what was certain, 0.7 for a coin that falls heads, 2.3 for a probability of one in ten. The stronger
      a token's colour, the more the model is surprised above the truth.
      <a href="${root}training/data-and-loss.html">Surprise is what training makes small</a></p>
    <ol class="tt-play__tokens" data-part="surprised" aria-label="Tokens, coloured where the model is more surprised than the truth"></ol>
    <p data-part="surprise"></p>
    <div class="tt-play__scroll" tabindex="0" role="group" aria-label="The same as numbers">
      <table class="tt-play__table"><caption class="visually-hidden">Surprise of each token</caption>
      <thead><tr><th scope="col">token</th><th scope="col">the model</th><th scope="col">the truth</th>
        <th scope="col">above it</th></tr></thead>
      <tbody data-part="surprises"></tbody></table></div>
    ${deeper("<p>The unit is the <em>nat</em>: the surprise is the natural logarithm of one over the probability. Over all stories nothing is less surprised on average than the truth.</p>")}`),
  fold("broken", "What if a part were missing?", `
    <p>Tick a part to take it away, though the model was trained with it. The bars follow.</p>
    <ul class="tt-play__parts" data-part="parts"></ul>
    ${bars("brokenBars", 'aria-label="The likeliest tokens without these parts"')}
    <table class="tt-play__table"><caption data-part="brokenAbout"></caption>
      <thead><tr><td></td><th scope="col">in common with the truth</th><th scope="col">writes on</th></tr></thead>
      <tbody data-part="broken"></tbody></table>
    <button type="button" data-part="mend">Put everything back</button>`),
  fold("ask", "Ask it", `
    <p>Ask the model about the story that your text begins. What the text does not say yet nobody can know, but how likely each answer is
      can be computed: that is the truth here.</p>
    <p class="tt-play__late" data-part="answering" hidden></p>
    <div class="tt-play__links" role="group" aria-label="What to ask" data-part="questions"></div>
    <p data-part="answered"></p>
    <table class="tt-play__bars tt-play__answers" aria-label="The answers">
      <thead><tr><th scope="col">answer</th>${scale(fullBar("100 %"))}
        <th scope="col" class="tt-play__model">believed</th><th scope="col" class="tt-play__truth">the truth</th></tr></thead>
      <tbody data-part="answers"></tbody><tbody data-part="otherAnswers"></tbody></table>
    <p class="tt-play__note">Press a token above, and it is asked before that token.</p>
    ${deeper(`<p>The same model was trained further on questions and answers. The truth is a <em>posterior</em>, the probability of each answer given
      the text, and the model has never seen one: it learned from the true answers, one of ten replaced by <em>I do not know</em>,
      whatever was asked. <a href="${root}after/a-model-that-answers.html">How a model learns to answer</a></p>`)}`),
  fold("wish", "How much does it want a happy ending?", `
    <p class="tt-play__late" data-part="wishing" hidden></p>
    <p>Make the model want a happy ending, a little or a lot. It was tuned on stories of its own, by their points: <span data-part="wishPoints"></span>.
      Moving away from how it wrote before costs it points: the less that costs, the stronger its wish. <a href="${root}after/preferences.html">How it is tuned</a></p>
    ${slider("Its wish", "wish", 'min="0" max="4" step="1"', ["none", "strong"])}
    <p class="tt-play__note" data-part="wishFetching" hidden></p>
    <div class="tt-wish">
      <div><p class="tt-play__label">The model writes:</p><p class="tt-play__story" data-part="wishStory"></p>
        <p class="tt-play__note" data-part="wishCounted"></p></div>
      <div><p class="tt-play__label" data-part="bestWrites"></p><p class="tt-play__story" data-part="bestStory"></p>
        <p class="tt-play__note" data-part="bestCounted"></p></div>
    </div>
    <button type="button" data-part="wishAnother">Another story of each</button>
    <div class="tt-wish">
      <svg aria-hidden="true" focusable="false" data-part="wishDrawing"></svg>
      <table class="tt-play__table"><caption class="visually-hidden">What its stories earn, and how far it has moved, beside the best</caption>
        <thead><tr><td></td><th scope="col">points a story</th><th scope="col">how far away</th></tr></thead>
        <tbody data-part="wishReached"></tbody></table></div>
    ${deeper(`<p>Moving away costs β points for each <em>nat</em>, the unit of the distance. The curve is exact: for so many nats away from the grammar
      nothing earns more. The model was measured on 1,000 of its stories, and its nats count from itself, untuned; ± is a standard error.</p>`)}`),
].join("");

// root: the address of the book's chapters
export const layout = (compact, root) => `
<div class="tt-play__core">${core(compact)}</div>
${compact ? `<section class="tt-learn" aria-labelledby="tt-learn"><h2 id="tt-learn">Watch it learn</h2>${learn}</section>${train}
  <p class="tt-play__more"><a data-part="more" href="${root}playground.html">More to try with this text</a>
    <button type="button" data-part="picture" aria-expanded="false">Share this</button></p><div data-part="sharing" hidden></div>`
    : `${train}<div class="tt-play__folds">${folds(root)}</div>`}
<p class="visually-hidden" role="status" aria-live="polite" data-part="voice"></p>`;
